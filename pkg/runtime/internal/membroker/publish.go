package membroker

// publish is a message on its way in.
type publish struct {
	exchange, key string
	mandatory     bool
	m             *message
	size          uint64
}

// begin is basic.publish: the content follows.
func (ch *channel) begin(r *reader) {
	r.short()
	ch.publish = &publish{exchange: r.text(), key: r.text(), mandatory: r.octet()&1 != 0}
}

// content takes a frame of a message's content.
func (ch *channel) content(f frame) {
	p := ch.publish
	switch {
	case ch.ended || p == nil:
		return
	case f.kind == headerFrame:
		m, size := parseHeader(f.payload)
		m.exchange, m.key = p.exchange, p.key
		p.m, p.size = &m, size
	case f.kind == bodyFrame && p.m != nil:
		p.m.body = append(p.m.body, f.payload...)
	}
	if p.m == nil || uint64(len(p.m.body)) < p.size {
		return
	}
	ch.publish = nil
	if ch.c.waitUnblocked(); !ch.ended {
		ch.arrive(p)
	}
}

func (ch *channel) arrive(p *publish) {
	b := ch.c.b
	if b.exchanges[p.exchange] == nil {
		ch.fail(notFound, "no exchange '%s' in vhost '/'", p.exchange)
		return
	}
	to := b.route(p.exchange, p.key)
	if len(to) == 0 && p.mandatory {
		ch.sendContent(call(basicReturn).short(noRoute).text("NO_ROUTE").text(p.exchange).text(p.key), p.m, p.m.headers)
	}
	taken := true
	for _, q := range to {
		taken = q.push(*p.m) && taken
	}
	if !ch.confirms {
		return
	}
	ch.published++
	switch {
	case taken:
		ch.send(call(basicAck).number(ch.published).bit(false))
	default:
		ch.send(call(basicNack).number(ch.published).octet(0))
	}
}
