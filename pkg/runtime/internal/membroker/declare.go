package membroker

import "fmt"

// Methods of exchanges and queues.
var (
	exchangeDeclare   = method{40, 10}
	exchangeDeclareOk = method{40, 11}
	exchangeDelete    = method{40, 20}
	exchangeDeleteOk  = method{40, 21}
	queueDeclare      = method{50, 10}
	queueDeclareOk    = method{50, 11}
	queueBind         = method{50, 20}
	queueBindOk       = method{50, 21}
	queuePurge        = method{50, 30}
	queuePurgeOk      = method{50, 31}
	queueDelete       = method{50, 40}
	queueDeleteOk     = method{50, 41}
)

func (ch *channel) declare(m method, r *reader) {
	b := ch.c.b
	r.short()
	name := r.text()
	switch m {
	case exchangeDeclare:
		ch.declareExchange(name, r)
	case exchangeDelete:
		delete(b.exchanges, name)
		ch.send(call(exchangeDeleteOk))
	case queueDeclare:
		ch.declareQueue(name, r)
	case queueBind:
		exchange, key := r.text(), r.text()
		if q, x := ch.find(name), b.exchanges[exchange]; q != nil && x != nil {
			x.bind(name, key)
			ch.send(call(queueBindOk))
		} else if q != nil {
			ch.fail(notFound, "no exchange '%s' in vhost '/'", exchange)
		}
	case queuePurge:
		if q := ch.find(name); q != nil {
			n := q.length()
			q.ready, q.returned = nil, nil
			ch.send(call(queuePurgeOk).long(uint32(n)))
		}
	case queueDelete:
		n := 0
		if q := b.queues[name]; q != nil {
			n = q.length()
			q.delete()
		}
		ch.send(call(queueDeleteOk).long(uint32(n)))
	default:
		ch.c.fail(540, fmt.Sprintf("NOT_IMPLEMENTED - method %d.%d", m.class, m.id))
	}
}

const passive = 1

func (ch *channel) declareExchange(name string, r *reader) {
	kind, bits := r.text(), r.octet()
	switch x := ch.c.b.exchanges[name]; {
	case x == nil && bits&passive != 0:
		ch.fail(notFound, "no exchange '%s' in vhost '/'", name)
		return
	case x == nil:
		ch.c.b.exchanges[name] = &exchange{kind: kind}
	case bits&passive == 0 && x.kind != kind:
		ch.fail(precondition, "inequivalent arg 'type' for exchange '%s' in vhost '/': received '%s' but current is '%s'", name, kind, x.kind)
		return
	}
	ch.send(call(exchangeDeclareOk))
}

func (ch *channel) declareQueue(name string, r *reader) {
	bits := r.octet()
	args := r.table()
	b := ch.c.b
	if name == "" && bits&passive == 0 {
		b.named++
		name = fmt.Sprintf("amq.gen-%d", b.named)
	}
	if b.queues[name] == nil && bits&passive == 0 {
		q := newQueue(b, name, args)
		q.autoDelete = bits&8 != 0
		if bits&4 != 0 {
			q.owner = ch.c
		}
		b.queues[name] = q
	}
	q := ch.find(name)
	if q == nil {
		return
	}
	if bits&passive == 0 && !q.same(args) {
		ch.fail(precondition, "inequivalent arg for queue '%s' in vhost '/'", name)
		return
	}
	ch.send(call(queueDeclareOk).text(name).long(uint32(q.length())).long(uint32(len(q.consumers))))
}
