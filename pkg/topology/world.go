package topology

import (
	"fmt"
	"strings"
)

// World is what is known of the objects on a broker, from whatever source.
type World struct {
	// Queues are the arguments of queues by name, with what a policy adds.
	Queues    map[string]map[string]any
	Exchanges map[string]Exchange // by name; Type and Arguments count
	Bindings  []Binding
	// Complete says that there is nothing beside these on the broker.
	Complete bool

	from map[string][]Binding // by their source; see Arrives
	to   map[[2]string][]Binding
}

// index sorts the bindings once: a ladder has one for each of thousands of queues.
func (w *World) index() {
	if w.from != nil {
		return
	}
	w.from, w.to = map[string][]Binding{}, map[[2]string][]Binding{}
	for _, b := range w.Bindings {
		w.from[b.Source] = append(w.from[b.Source], b)
		if !b.ToExchange {
			ends := [2]string{b.Source, b.Destination}
			w.to[ends] = append(w.to[ends], b)
		}
	}
}

// Known returns the world of a topology that has been declared: what is external
// may look like anything.
func Known(t *Topology) World {
	w := World{Queues: map[string]map[string]any{}, Exchanges: map[string]Exchange{}}
	for _, q := range t.Queues {
		if !q.External {
			w.Queues[q.Name] = q.Arguments
		}
	}
	for _, x := range t.Exchanges {
		if !x.External {
			w.Exchanges[x.Name] = x
		}
	}
	w.Bindings = t.Bindings
	return w
}

// A Doubt is why a trip is not known to arrive.
type Doubt struct {
	Wrong bool   // it is known not to; otherwise it cannot be seen
	Text  string // what leads elsewhere, or what cannot be seen
}

// Arrives follows the copies of t from exchange to queue to exchange; nil when
// they arrive. The bindings must not change after the first call.
func (w *World) Arrives(t Trip) *Doubt {
	w.index()
	if x, known := w.Exchanges[t.Exchange]; known && t.Delayed && x.Type != DelayedMessageType {
		return wrong("exchange %q is of type %s, not %s, and holds nothing back", t.Exchange, x.Type, DelayedMessageType)
	}
	return w.follow(t.Exchange, t.Key, traveller{to: t.To, expires: t.Expires, seen: map[string]bool{}})
}

// traveller is a copy on its way.
type traveller struct {
	to      string
	expires bool            // by itself, in the next queue
	seen    map[string]bool // where it has been
}

func (w *World) follow(exchange, key string, t traveller) *Doubt {
	if exchange == "" {
		return w.wait(key, key, t)
	}
	x, known := w.Exchanges[exchange]
	switch {
	case !known && w.Complete:
		return wrong("exchange %q does not exist", exchange)
	case !known:
		return unseen("exchange %q", exchange)
	case t.seen[kindExchange(exchange)]:
		return wrong("copies go in circles at exchange %q", exchange)
	}
	t.seen[kindExchange(exchange)] = true
	for _, b := range w.to[[2]string{exchange, t.to}] {
		if matches(x, b, key) {
			return nil
		}
	}
	worst := w.nowhere(x, key, t)
	for _, b := range w.from[exchange] {
		if !matches(x, b, key) {
			continue
		}
		var d *Doubt
		if b.ToExchange {
			d = w.follow(b.Destination, key, t)
		} else {
			d = w.wait(b.Destination, key, t)
		}
		if d == nil {
			return nil
		}
		worst = d.or(worst)
	}
	return worst
}

// nowhere is the doubt about an exchange of which no binding leads on.
func (w *World) nowhere(x Exchange, key string, t traveller) *Doubt {
	switch {
	case !routable(x):
		return unseen("the routing of exchange %q, of type %q", x.Name, x.Type)
	case w.Complete:
		return wrong("exchange %q sends nothing with key %q to queue %q", x.Name, key, t.to)
	}
	return unseen("the bindings of exchange %q", x.Name)
}

// wait is a copy's arrival in a queue: its last one, or a queue that gives it on
// when it expires.
func (w *World) wait(queue, key string, t traveller) *Doubt {
	if queue == t.to {
		return nil
	}
	args, known := w.Queues[queue]
	switch {
	case !known && w.Complete:
		return wrong("queue %q does not exist", queue)
	case !known:
		return unseen("the arguments of queue %q", queue)
	case t.seen[queue]:
		return wrong("copies go in circles at queue %q", queue)
	}
	t.seen[queue] = true
	exchange, routed := args["x-dead-letter-exchange"].(string)
	switch _, ttl := args["x-message-ttl"]; {
	case args["x-queue-type"] == "stream":
		return wrong("queue %q is a stream, which gives nothing on", queue)
	case !routed:
		return wrong("what expires in queue %q is gone: it has no x-dead-letter-exchange", queue)
	case !ttl && !t.expires:
		return wrong("nothing expires in queue %q: it has no x-message-ttl", queue)
	}
	if own, given := args["x-dead-letter-routing-key"].(string); given {
		key = own
	}
	t.expires = false // dead-lettering takes a message's own expiration away
	d := w.follow(exchange, key, t)
	if _, known := w.Queues[key]; d == nil || exchange != "" || key == queue || known && !d.Wrong {
		return d
	}
	return wrong("queue %q sends what expires to queue %q, not to %q", queue, key, t.to)
}

// routable reports whether the type of an exchange is one whose rules are known.
func routable(x Exchange) bool {
	switch kindOfRouting(x) {
	case "direct", "topic", "fanout":
		return true
	}
	return false
}

func kindOfRouting(x Exchange) string {
	if x.Type == DelayedMessageType {
		kind, _ := x.Arguments["x-delayed-type"].(string)
		return kind
	}
	return x.Type
}

func matches(x Exchange, b Binding, key string) bool {
	switch kindOfRouting(x) {
	case "direct":
		return b.RoutingKey == key
	case "fanout":
		return true
	case "topic":
		return topicMatch(b.RoutingKey, key)
	}
	return false
}

// topicMatch is the rule of topic exchanges: "*" is one word, "#" any number.
func topicMatch(binding, key string) bool {
	if !strings.Contains(binding, "#") {
		return wordsMatch(binding, key)
	}
	pattern, words := strings.Split(binding, "."), strings.Split(key, ".")
	// reach[j]: the pattern so far matches the first j words.
	reach := make([]bool, len(words)+1)
	reach[0] = true
	for _, p := range pattern {
		next := make([]bool, len(words)+1)
		for j := range next {
			switch {
			case p == "#":
				next[j] = reach[j] || j > 0 && next[j-1]
			case j > 0:
				next[j] = reach[j-1] && (p == "*" || p == words[j-1])
			}
		}
		reach = next
	}
	return reach[len(words)]
}

// wordsMatch is topicMatch without "#".
func wordsMatch(pattern, key string) bool {
	for {
		p, patterns, more := strings.Cut(pattern, ".")
		k, keys, longer := strings.Cut(key, ".")
		switch {
		case p != "*" && p != k, more != longer:
			return false
		case !more:
			return true
		}
		pattern, key = patterns, keys
	}
}

// kindExchange keeps exchanges and queues of one name apart.
func kindExchange(name string) string { return "exchange " + name }

func wrong(format string, args ...any) *Doubt {
	return &Doubt{Wrong: true, Text: fmt.Sprintf(format, args...)}
}

func unseen(format string, args ...any) *Doubt { return &Doubt{Text: fmt.Sprintf(format, args...)} }

// or returns what is not known rather than what is wrong: another way may arrive.
func (d *Doubt) or(other *Doubt) *Doubt {
	if !other.Wrong {
		return other
	}
	return d
}
