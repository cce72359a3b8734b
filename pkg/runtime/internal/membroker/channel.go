package membroker

import (
	"fmt"
	"slices"
)

const classBasic = 60

// Methods of the class basic, and confirm.select.
var (
	basicQos       = method{classBasic, 10}
	basicQosOk     = method{classBasic, 11}
	basicConsume   = method{classBasic, 20}
	basicConsumeOk = method{classBasic, 21}
	basicCancel    = method{classBasic, 30}
	basicCancelOk  = method{classBasic, 31}
	basicPublish   = method{classBasic, 40}
	basicReturn    = method{classBasic, 50}
	basicDeliver   = method{classBasic, 60}
	basicGet       = method{classBasic, 70}
	basicGetOk     = method{classBasic, 71}
	basicGetEmpty  = method{classBasic, 72}
	basicAck       = method{classBasic, 80}
	basicReject    = method{classBasic, 90}
	basicNack      = method{classBasic, 120}
	confirmSelect  = method{85, 10}
	confirmOk      = method{85, 11}
)

// Reply codes.
const (
	noRoute        = 312
	accessRefused  = 403
	notFound       = 404
	resourceLocked = 405
	precondition   = 406
)

// channel is guarded by the broker's lock.
type channel struct {
	c         *conn
	id        uint16
	ended     bool
	prefetch  int // of the next consumer; 0: any number
	tag       uint64
	unacked   []unacked // in the order of their tags
	consumers map[string]*consumer

	confirms  bool
	published uint64
	publish   *publish // the message whose content is coming
}

type consumer struct {
	ch        *channel
	q         *queue
	tag       string
	prefetch  int
	inFlight  int
	autoAck   bool
	exclusive bool
}

// unacked is a delivery that waits for its settlement.
type unacked struct {
	tag uint64
	q   *queue
	c   *consumer // nil: of basic.get
	m   message
}

func (ch *channel) send(a arguments) { ch.c.write(ch.id, a) }

func (ch *channel) sendContent(a arguments, m *message, headers table) {
	out := appendFrame(nil, frame{methodFrame, ch.id, a})
	for _, f := range m.content(ch.id, headers) {
		out = appendFrame(out, f)
	}
	_, _ = ch.c.wire.Write(out)
}

// fail ends the channel for an error of its client.
func (ch *channel) fail(code uint16, format string, args ...any) {
	names := map[uint16]string{accessRefused: "ACCESS_REFUSED", notFound: "NOT_FOUND", resourceLocked: "RESOURCE_LOCKED", precondition: "PRECONDITION_FAILED"}
	endAll(ch)
	ch.send(call(chanClose).short(code).text(names[code] + " - " + fmt.Sprintf(format, args...)).short(0).short(0))
}

// endAll puts back what channels have in hand, and delivers it elsewhere: none of it to
// another of them.
func endAll(channels ...*channel) {
	var touched []*queue
	for _, ch := range channels {
		ch.ended = true
		for _, c := range ch.consumers {
			c.q.remove(c)
			touched = append(touched, c.q)
		}
		clear(ch.consumers)
	}
	for _, ch := range channels {
		for _, u := range ch.unacked {
			if u.exists() {
				u.q.putBack(u.m, lost)
				touched = append(touched, u.q)
			}
		}
		ch.unacked = nil
	}
	for _, q := range touched {
		q.pump()
	}
}

func (ch *channel) handle(m method, r *reader) {
	switch m {
	case basicQos:
		r.long()
		ch.prefetch = int(r.short())
		ch.send(call(basicQosOk))
	case basicConsume:
		ch.consume(r)
	case basicCancel:
		ch.cancel(r.text())
	case basicGet:
		ch.get(r)
	case basicPublish:
		ch.begin(r)
	case basicAck:
		tag, multiple := r.number(), r.octet()&1 != 0
		ch.settle(tag, multiple, func(unacked) {})
	case basicReject:
		tag, requeue := r.number(), r.octet()&1 != 0
		ch.settle(tag, false, func(u unacked) { u.giveUp(requeue, rejected) })
	case basicNack:
		tag, bits := r.number(), r.octet()
		ch.settle(tag, bits&1 != 0, func(u unacked) { u.giveUp(bits&2 != 0, nacked) })
	case confirmSelect:
		ch.confirms = true
		ch.send(call(confirmOk))
	default:
		ch.declare(m, r)
	}
}

func (ch *channel) consume(r *reader) {
	r.short()
	name, tag, bits := r.text(), r.text(), r.octet()
	q := ch.find(name)
	if q == nil {
		return
	}
	exclusive := bits&4 != 0
	if len(q.consumers) > 0 && (exclusive || q.consumers[0].exclusive) {
		ch.fail(accessRefused, "queue '%s' in vhost '/' in exclusive use", name)
		return
	}
	c := &consumer{ch: ch, q: q, tag: tag, prefetch: ch.prefetch, autoAck: bits&2 != 0, exclusive: exclusive}
	ch.consumers[tag] = c
	q.consumers = append(q.consumers, c)
	ch.send(call(basicConsumeOk).text(tag))
	q.pump()
}

func (ch *channel) cancel(tag string) {
	if c := ch.consumers[tag]; c != nil {
		delete(ch.consumers, tag)
		c.q.remove(c)
		c.q.pump()
	}
	ch.send(call(basicCancelOk).text(tag))
}

func (ch *channel) get(r *reader) {
	r.short()
	q, autoAck := ch.find(r.text()), r.octet()&1 != 0
	if q == nil {
		return
	}
	if q.pump(); q.head() == nil {
		ch.send(call(basicGetEmpty).text(""))
		return
	}
	m := q.pop()
	headers := q.headers(&m)
	if q.quorum && q.b.series == V310 {
		headers = headers.with("x-delivery-count", intValue(m.count))
	}
	tag := ch.hold(nil, q, m, autoAck)
	ch.sendContent(call(basicGetOk).number(tag).bit(m.redelivered).text(m.exchange).text(m.key).long(uint32(q.length())), &m, headers)
}

func (ch *channel) deliver(c *consumer, q *queue, m message) {
	headers := q.headers(&m)
	tag := ch.hold(c, q, m, c.autoAck)
	ch.sendContent(call(basicDeliver).text(c.tag).number(tag).bit(m.redelivered).text(m.exchange).text(m.key), &m, headers)
}

// hold notes a delivery until it is settled, and returns its tag.
func (ch *channel) hold(c *consumer, q *queue, m message, autoAck bool) uint64 {
	ch.tag++
	if !autoAck {
		m.acquired++
		ch.unacked = append(ch.unacked, unacked{ch.tag, q, c, m})
		if c != nil {
			c.inFlight++
		}
	}
	return ch.tag
}

// settle takes deliveries out and finishes each.
func (ch *channel) settle(tag uint64, multiple bool, finish func(unacked)) {
	from, to := 0, len(ch.unacked)
	if !multiple || tag > 0 {
		at, found := slices.BinarySearchFunc(ch.unacked, tag, func(u unacked, tag uint64) int { return int(int64(u.tag) - int64(tag)) })
		if !found {
			ch.fail(precondition, "unknown delivery tag %d", tag)
			return
		}
		from, to = at, at+1
		if multiple {
			from = 0
		}
	}
	taken := slices.Clone(ch.unacked[from:to])
	ch.unacked = slices.Delete(ch.unacked, from, to)
	for _, u := range taken {
		if u.c != nil {
			u.c.inFlight--
		}
		if u.exists() {
			finish(u)
		}
	}
	for _, u := range taken {
		u.q.pump()
	}
}

// exists reports whether the queue that the delivery is of is still there.
func (u unacked) exists() bool { return u.q.b.queues[u.q.name] == u.q }

// giveUp ends a delivery that was not acknowledged.
func (u unacked) giveUp(requeue bool, how comeback) {
	if requeue {
		u.q.putBack(u.m, how)
		return
	}
	u.q.b.deadLetter(u.q, &u.m, "rejected")
}

// find returns a queue that the connection may use, or ends the channel.
func (ch *channel) find(name string) *queue {
	q := ch.c.b.queues[name]
	switch {
	case q == nil:
		ch.fail(notFound, "no queue '%s' in vhost '/'", name)
		return nil
	case q.owner != nil && q.owner != ch.c:
		ch.fail(resourceLocked, "cannot obtain exclusive access to locked queue '%s' in vhost '/'", name)
		return nil
	}
	return q
}
