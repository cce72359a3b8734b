package membroker

import (
	"slices"
	"time"
)

// defaultLimit is the delivery limit of quorum queues from RabbitMQ 4.0 on.
const defaultLimit = 20

// queue is guarded by the broker's lock.
type queue struct {
	b            *Broker
	name         string
	args         table
	owner        *conn // of an exclusive queue
	autoDelete   bool
	quorum       bool
	limit        int64 // of deliveries that fail; negative: none
	most         int64 // messages; negative: any number
	rejects      bool  // publishes when it is full
	ttl          time.Duration
	expires      bool // after ttl
	deadExchange *string
	deadKey      string
	single       bool // one consumer at a time is active

	returned  []message // quorum: handed back, which comes first
	ready     []message
	seq       uint64
	consumers []*consumer
	turn      int // whose it is
	expire    *time.Timer
}

func newQueue(b *Broker, name string, args table) *queue {
	q := &queue{
		b:       b,
		name:    name,
		args:    args,
		quorum:  args.text("x-queue-type") == "quorum",
		most:    args.number("x-max-length", -1),
		rejects: args.text("x-overflow") == "reject-publish",
		expires: args.find("x-message-ttl") != nil,
		ttl:     time.Duration(args.number("x-message-ttl", 0)) * time.Millisecond,
		deadKey: args.text("x-dead-letter-routing-key"),
		single:  args.isTrue("x-single-active-consumer"),
		expire:  time.NewTimer(0),
	}
	q.expire.Stop()
	q.limit = -1
	if q.quorum && b.series.atLeast(V40) {
		q.limit = defaultLimit
	}
	q.limit = args.number("x-delivery-limit", q.limit)
	if args.find("x-dead-letter-exchange") != nil {
		to := args.text("x-dead-letter-exchange")
		q.deadExchange = &to
	}
	return q
}

// same reports whether args declare the queue as it is.
func (q *queue) same(args table) bool {
	return slices.EqualFunc(sorted(q.args), sorted(args), func(a, b field) bool {
		return a.key == b.key && (slices.Equal(a.value, b.value) || table{a}.number(a.key, -1) == table{b}.number(a.key, -2))
	})
}

func sorted(t table) table {
	out := slices.Clone(t)
	slices.SortFunc(out, func(a, b field) int {
		if a.key < b.key {
			return -1
		}
		return 1
	})
	return out
}

func (q *queue) length() int { return len(q.returned) + len(q.ready) }

// push adds a message at the end. It reports false when the queue refuses it.
func (q *queue) push(m message) bool {
	if q.most >= 0 && int64(q.length()) >= q.most && q.rejects {
		return false
	}
	q.seq++
	m.seq = q.seq
	if life, is := m.lives(); is {
		m.expires = time.Now().Add(life)
	}
	if last := time.Now().Add(q.ttl); q.expires && (m.expires.IsZero() || last.Before(m.expires)) {
		m.expires = last
	}
	q.ready = append(q.ready, m)
	q.pump()
	for q.most >= 0 && int64(q.length()) > q.most {
		old := q.pop()
		q.b.deadLetter(q, &old, "maxlen")
	}
	return true
}

// pop takes the next message out; there is one.
func (q *queue) pop() message {
	from := &q.ready
	if len(q.returned) > 0 {
		from = &q.returned
	}
	m := (*from)[0]
	*from = slices.Delete(*from, 0, 1)
	return m
}

func (q *queue) head() *message {
	switch {
	case len(q.returned) > 0:
		return &q.returned[0]
	case len(q.ready) > 0:
		return &q.ready[0]
	}
	return nil
}

// pump delivers what can be delivered, and drops what has expired at the head.
func (q *queue) pump() {
	for m := q.head(); m != nil; m = q.head() {
		if !m.expires.IsZero() && !time.Now().Before(m.expires) {
			old := q.pop()
			q.b.deadLetter(q, &old, "expired")
			continue
		}
		c := q.next()
		if c == nil {
			break
		}
		c.ch.deliver(c, q, q.pop())
	}
	q.expire.Stop()
	if m := q.head(); m != nil && !m.expires.IsZero() {
		q.expire = time.AfterFunc(time.Until(m.expires), func() {
			q.b.mu.Lock()
			defer q.b.mu.Unlock()
			if q.b.queues[q.name] == q {
				q.pump()
			}
		})
	}
}

// next is the consumer whose turn it is; nil when none has room.
func (q *queue) next() *consumer {
	candidates := len(q.consumers)
	if q.single {
		candidates = min(candidates, 1)
	}
	for i := range candidates {
		at := (q.turn + i) % candidates
		if c := q.consumers[at]; c.prefetch == 0 || c.inFlight < c.prefetch {
			q.turn = (at + 1) % candidates
			return c
		}
	}
	return nil
}

// How a delivery comes back.
type comeback int

const (
	rejected comeback = iota // basic.reject
	nacked                   // basic.nack
	lost                     // with its channel or connection
)

// putBack returns a delivery to the queue. The caller pumps.
func (q *queue) putBack(m message, how comeback) {
	m.redelivered = true
	if !q.quorum {
		at, _ := slices.BinarySearchFunc(q.ready, m.seq, func(e message, seq uint64) int { return int(int64(e.seq) - int64(seq)) })
		q.ready = slices.Insert(q.ready, at, m)
		return
	}
	if how != nacked || !q.b.series.atLeast(V43) {
		m.count++
	}
	if q.limit >= 0 && m.count > q.limit {
		q.b.deadLetter(q, &m, "delivery_limit")
		return
	}
	q.returned = append(q.returned, m)
}

// headers are those a delivery of m has.
func (q *queue) headers(m *message) table {
	h := m.headers
	if !q.quorum || !m.redelivered {
		return h
	}
	if m.count > 0 {
		h = h.with("x-delivery-count", intValue(m.count))
	}
	if q.b.series.atLeast(V43) {
		h = h.with("x-acquired-count", intValue(m.acquired))
	}
	return h
}

// remove ends a consumer's stay. The caller pumps.
func (q *queue) remove(c *consumer) {
	q.consumers = slices.DeleteFunc(q.consumers, func(other *consumer) bool { return other == c })
	if q.autoDelete && len(q.consumers) == 0 {
		q.delete()
	}
}

// delete cancels the consumers and drops the messages.
func (q *queue) delete() {
	q.expire.Stop()
	if q.b.queues[q.name] == q {
		delete(q.b.queues, q.name)
	}
	for _, x := range q.b.exchanges {
		x.unbind(q.name)
	}
	for _, c := range q.consumers {
		delete(c.ch.consumers, c.tag)
		c.ch.send(call(basicCancel).text(c.tag).bit(true))
	}
	q.consumers, q.ready, q.returned = nil, nil, nil
}
