package spec

import (
	"math"
	"strings"
	"time"
)

// notDefaulted are the queue keys that defaults cannot set.
var notDefaulted = []string{"name", "dead_letter", "bindings", "handler"}

// withDefaults returns own with the keys that it does not set itself. A value
// is taken whole: mappings are not merged.
func withDefaults(own, defaults *node) *node {
	all := *own
	all.entries = append([]entry(nil), own.entries...)
	if defaults != nil {
		for _, e := range defaults.entries {
			if own.get(e.key) == nil {
				all.entries = append(all.entries, e)
			}
		}
	}
	return &all
}

func (d *decoder) queue(own, defaults *node) Queue {
	f := d.fields(withDefaults(own, defaults))
	q := Queue{Pos: own.pos, Keys: map[string]Pos{}, Type: QueueType(f.text("type"))}
	if v := f.scalar("name"); v != nil {
		q.Pos, q.Name = v.pos, d.name(v, reserve)
	}
	positions(q.Keys, "", own)
	q.written = interpolatedNames(f.n)
	d.declaration(&q, f)
	d.retries(&q, f)
	d.consuming(&q, f)
	q.Handler = (&handlerDecoder{d}).handler(f.n.get("handler"))
	q.bad = badKeys(own, defaults, f.n)
	return q
}

// positions records where the keys of n and of the mappings in it have their
// values.
func positions(into map[string]Pos, prefix string, n *node) {
	for _, e := range n.entries {
		into[prefix+e.key] = e.value.pos
		if e.value.kind == mapping {
			positions(into, prefix+e.key+".", e.value)
		}
	}
}

// interpolatedNames returns the text of the keys that hold names and were
// interpolated.
func interpolatedNames(n *node) map[string]string {
	var out map[string]string
	delay := n.get("delay")
	for key, v := range map[string]*node{
		"name": n.get("name"), "dead_letter": n.get("dead_letter"), "dead_letter_exchange": n.get("dead_letter_exchange"),
		"delay.waiting_queue": delay.get("waiting_queue"), "delay.exchange": delay.get("exchange"),
	} {
		if v == nil || v.kind != scalar || !v.inserted {
			continue
		}
		if out == nil {
			out = map[string]string{}
		}
		out[key] = short(maskURL(v.text))
	}
	return out
}

func badKeys(own, defaults, all *node) map[string]bool {
	var bad map[string]bool
	set := func(key string) {
		if bad == nil {
			bad = map[string]bool{}
		}
		bad[key] = true
	}
	for _, e := range all.entries {
		if e.value.broken {
			set(e.key)
		}
	}
	for _, n := range []*node{own, defaults} {
		if n != nil {
			for key := range n.seen {
				set(key)
			}
		}
	}
	return bad
}

func (d *decoder) declaration(q *Queue, f fields) {
	q.Durable = f.boolean("durable", true)
	q.Exclusive = f.boolean("exclusive", false)
	q.AutoDelete = f.boolean("auto_delete", false)
	q.External = f.boolean("external", false)
	q.Arguments = f.arguments("arguments")
	for _, n := range list(f.n.get("bindings")) {
		if n.kind == mapping {
			q.Bindings = append(q.Bindings, d.binding(n))
		}
	}
	if v := f.scalar("dead_letter_exchange"); v != nil && d.shortText(v) {
		q.DeadLetterExchange = &v.value
	}
	if v := f.scalar("dead_letter_routing_key"); v != nil && d.shortText(v) {
		q.DeadLetterRoutingKey = &v.value
	}
}

func (d *decoder) binding(n *node) Binding {
	f := d.fields(n)
	b := Binding{Arguments: f.arguments("arguments"), Pos: n.pos}
	if v := f.scalar("exchange"); v != nil {
		b.Exchange = d.boundExchange(v)
	}
	if v := f.scalar("routing_key"); v != nil && d.shortText(v) {
		b.RoutingKey = v.value
	}
	return b
}

// boundExchange checks the exchange of a binding. The server refuses bindings
// to the default exchange (403), which reaches every queue by its name anyway.
func (d *decoder) boundExchange(v *node) string {
	switch {
	case v.value == "":
		d.refuse(v, "default-exchange", "nothing can be bound to the default exchange",
			"every queue is reachable there under its own name; remove the binding")
		return ""
	case d.external(v.value):
		return d.name(v, allowReserved)
	}
	return d.name(v, allowPredeclared)
}

// external reports whether exchanges lists the name as one that must exist.
func (d *decoder) external(name string) bool {
	if !strings.HasPrefix(name, "amq.") {
		return false
	}
	for _, n := range list(d.root.get("exchanges")) {
		f := d.fields(n)
		if f.text("name") == name && f.text("external") == "true" {
			return true
		}
	}
	return false
}

func (d *decoder) retries(q *Queue, f fields) {
	q.MaxAttempts = f.integer("max_attempts", 0)
	if v := f.scalar("dead_letter"); v != nil {
		q.DeadLetter = d.name(v, reserve)
	}
	q.DeadLetterBy = DeadLetterBy(f.text("dead_letter_by"))
	q.RetryOriginal = RejectOriginal
	if f.text("retry_original") == string(AckOriginal) {
		q.RetryOriginal = AckOriginal
	}
	q.RetryPublisher = d.retryPublisher(f.n.get("retry_publisher"))
	q.Delay = d.delay(f.n.get("delay"))
	q.Backoff = d.backoff(f.n.get("backoff"))
}

func (d *decoder) retryPublisher(n *node) *RetryPublisher {
	if n == nil || n.kind != mapping {
		return nil
	}
	f := d.fields(n)
	p := &RetryPublisher{}
	if v := f.scalar("exchange"); v != nil && d.shortText(v) {
		p.Exchange = v.value
	}
	if f.scalar("persistent") != nil {
		persistent := f.boolean("persistent", false)
		p.Persistent = &persistent
	}
	if f.scalar("priority") != nil {
		priority := uint8(min(max(f.integer("priority", 0), 0), math.MaxUint8))
		p.Priority = &priority
	}
	return p
}

func (d *decoder) consuming(q *Queue, f fields) {
	q.Concurrency = f.integer("concurrency", 1)
	q.Batch = d.batch(f.n.get("batch"))
	q.Prefetch = f.integer("prefetch", defaultPrefetch(q))
	q.OrderedBy = orderedBy(f.text("ordered_by"))
	q.Rate = d.rate(f.scalar("rate"))
	q.MaxBody = f.size("max_body", 0)
	if n := f.n.get("breaker"); n != nil && n.kind == mapping {
		b := d.fields(n)
		q.Breaker = &Breaker{Failures: b.integer("failures", 1), Cooldown: b.duration("cooldown", 30*time.Second)}
	}
	if n := f.n.get("consumer"); n != nil && n.kind == mapping {
		q.Consumer = d.consumer(d.fields(n))
	}
}

// defaultPrefetch lets every hook have its next work at hand.
func defaultPrefetch(q *Queue) int {
	per := 1
	if q.Batch != nil {
		per = q.Batch.Size
	}
	return int(min(2*int64(q.Concurrency)*int64(per), math.MaxUint16))
}

func orderedBy(s string) *OrderedBy {
	if s == "" {
		return nil
	}
	by, header, _ := strings.Cut(s, ":")
	return &OrderedBy{By: by, Header: header}
}

func (d *decoder) rate(n *node) float64 {
	if n == nil {
		return 0
	}
	r, err := ParseRate(n.value)
	if err != nil {
		d.refuse(n, "value", "rate must be a number per second, minute or hour: "+err.Error(), "for example 50/s, 100/m or 20/h")
	}
	return r
}

func (d *decoder) batch(n *node) *Batch {
	if n == nil || n.kind != mapping {
		return nil
	}
	f := d.fields(n)
	return &Batch{Size: f.integer("size", 1), Wait: f.delay("wait", 50*time.Millisecond)}
}

func (d *decoder) consumer(f fields) Consumer {
	c := Consumer{
		Exclusive:    f.boolean("exclusive", false),
		SingleActive: f.boolean("single_active", false),
	}
	if f.scalar("priority") != nil {
		c.Priority, c.HasPriority = int32(f.integer("priority", 0)), true
	}
	if v := f.scalar("tag"); v != nil && d.shortText(v) {
		c.Tag = v.value
	}
	return c
}
