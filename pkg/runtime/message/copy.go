package message

import (
	"strconv"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rsctl/rsctl/pkg/settle"
)

// maxExpiration is the longest per-message TTL in milliseconds that RabbitMQ
// accepts in a publish (406 above): ten years. MQTT clients can set longer ones.
const maxExpiration = 315_360_000_000

// directReplyTo is the pseudo-queue of direct reply-to. The broker refuses to
// take it (406) from a channel that has no reply consumer, which ours never
// has. In a delivery it has been replaced by a name of its own, which passes.
const directReplyTo = "amq.rabbitmq.reply-to"

// Failure says why a message is dead-lettered.
type Failure struct {
	Reason string // a stable word: "max_attempts", "max_body"
	// Error is the last failure in the words of the hook or the runtime. The
	// copy carries at most 1 KiB of it, on one line.
	Error string
	At    time.Time
	// Unseen says that no hook has seen the delivery, so that it was no attempt.
	Unseen bool
}

// Copier makes the copies of one queue's deliveries. Persistent overrides that
// property on all of them, and Priority on retry and dead-letter copies; nil keeps
// the original's.
type Copier struct {
	Queue      string
	Persistent *bool
	Priority   *uint8
}

// Copy builds the publishing that takes the place of d; f is used for a
// dead-letter copy only. d is not modified. The body and nested header values
// are shared with d, so neither may be changed afterwards.
//
// The copy keeps the body, all properties and every header with its wire type,
// except what RabbitMQ would act on a second time. What had to move is kept
// under an x-rsctl- name.
func (c Copier) Copy(d *amqp.Delivery, r Reading, s settle.Copy, f Failure) amqp.Publishing {
	p := properties(d)
	p.Headers = c.headers(d, r)
	switch s.Purpose {
	case settle.ForDeadLetter:
		c.override(&p)
		bury(&p, d, r, f)
	case settle.ForDelay:
		c.overrideMode(&p)
		p.Headers[HeaderCount] = settle.FormatCount(min(s.Count, maxCount))
		wait(&p, d, s.To)
	default:
		p.Headers[HeaderCount] = settle.FormatCount(min(s.Count, maxCount))
		c.override(&p)
		restoreExpiration(&p, d)
	}
	return p
}

// Bare builds the smallest dead-letter copy: the original without what must not
// travel, and nothing added. It is for a message whose headers leave no room in
// a frame for those of [Copier.Copy].
func (c Copier) Bare(d *amqp.Delivery) amqp.Publishing {
	p := properties(d)
	p.Headers = cloneTable(d.Headers)
	drop(p.Headers, HeaderCount, HeaderExpiration)
	c.override(&p)
	return p
}

// properties copies what may travel as it is. user_id may not: the broker
// refuses (406) any user's but the connection's own.
func properties(d *amqp.Delivery) amqp.Publishing {
	p := amqp.Publishing{
		ContentType:     d.ContentType,
		ContentEncoding: d.ContentEncoding,
		Priority:        d.Priority,
		CorrelationId:   d.CorrelationId,
		ReplyTo:         d.ReplyTo,
		MessageId:       d.MessageId,
		Timestamp:       d.Timestamp,
		Type:            d.Type,
		AppId:           d.AppId,
		Body:            d.Body,
	}
	if d.DeliveryMode <= amqp.Persistent { // RabbitMQ refuses others (406)
		p.DeliveryMode = d.DeliveryMode
	}
	if p.ReplyTo == directReplyTo {
		p.ReplyTo = ""
	}
	return p
}

// headers returns the headers that all copies of c have in common.
func (c Copier) headers(d *amqp.Delivery, r Reading) amqp.Table {
	h := cloneTable(d.Headers)
	if cc, ok := d.Headers[headerCC]; ok {
		h[HeaderCC] = cc
	}
	if d.UserId != "" {
		h[HeaderUserID] = d.UserId
	}
	// The history from before the first copy is the one worth keeping: later
	// deaths are those of the waiting queue.
	if death, ok := d.Headers[headerDeath]; ok && r.Counted == 0 {
		h[HeaderDeath] = death
	}
	h[HeaderQueue] = c.Queue
	h[HeaderExchange] = r.Exchange
	h[HeaderRoutingKey] = r.RoutingKey
	return h
}

// cloneTable returns a copy of t, never nil, without the server's headers.
func cloneTable(t amqp.Table) amqp.Table {
	h := make(amqp.Table, len(t)+8)
	for k, v := range t {
		h[k] = v
	}
	drop(h, serverHeaders...)
	return h
}

func drop(h amqp.Table, names ...string) {
	for _, name := range names {
		delete(h, name)
	}
}

func (c Copier) override(p *amqp.Publishing) {
	if c.Priority != nil {
		p.Priority = *c.Priority
	}
	c.overrideMode(p)
}

func (c Copier) overrideMode(p *amqp.Publishing) {
	switch {
	case c.Persistent == nil:
	case *c.Persistent:
		p.DeliveryMode = amqp.Persistent
	default:
		p.DeliveryMode = amqp.Transient
	}
}

// bury marks p as a dead letter. It carries no count, so that whoever puts it
// back, with whatever tool, starts it afresh, and no expiration, so that it
// neither vanishes from the dead-letter queue nor after it was put back.
func bury(p *amqp.Publishing, d *amqp.Delivery, r Reading, f Failure) {
	h := p.Headers
	drop(h, HeaderCount, HeaderExpiration, HeaderError)
	if _, kept := h[HeaderDeath]; !kept {
		if death, ok := d.Headers[headerDeath]; ok {
			h[HeaderDeath] = death
		}
	}
	h[HeaderReason] = f.Reason
	h[HeaderAttempts] = attempts(r, f)
	h[HeaderFailedAt] = f.At.UTC().Format(time.RFC3339)
	if text := oneLine(f.Error); text != "" {
		h[HeaderError] = text
	}
}

// attempts is how often a hook has seen the message.
func attempts(r Reading, f Failure) int64 {
	if f.Unseen {
		return int64(r.Attempt) - 1
	}
	return int64(r.Attempt)
}

// wait prepares p for the place where it waits. A delayed-message exchange
// holds the copy outside of any queue, so its own expiration can travel; in a
// waiting queue that would end the wait early and is put aside.
func wait(p *amqp.Publishing, d *amqp.Delivery, to settle.Target) {
	if to.XDelay > 0 {
		p.Headers[headerDelay] = milliseconds(to.XDelay)
		restoreExpiration(p, d)
		return
	}
	if d.Expiration != "" {
		p.Headers[HeaderExpiration] = d.Expiration
	}
	if to.Expiration > 0 {
		p.Expiration = strconv.FormatInt(milliseconds(to.Expiration), 10)
	}
}

// restoreExpiration gives p the producer's expiration: the one d still has, or
// the one put aside when a copy waited (the broker drops a message's expiration
// when it dead-letters it). One that the broker would refuse stays aside.
func restoreExpiration(p *amqp.Publishing, d *amqp.Delivery) {
	text := d.Expiration
	if text == "" {
		text, _ = d.Headers[HeaderExpiration].(string)
	}
	if n, ok := decimal(text); ok && n >= 0 && n <= maxExpiration {
		p.Expiration = text
		delete(p.Headers, HeaderExpiration)
		return
	}
	if d.Expiration != "" {
		p.Headers[HeaderExpiration] = d.Expiration
	}
}

// milliseconds returns d in whole milliseconds, rounded up: a delay may be
// longer than asked for, never shorter.
func milliseconds(d time.Duration) int64 {
	ms := d.Milliseconds()
	if d%time.Millisecond > 0 {
		ms++
	}
	return ms
}
