package membroker

import (
	"slices"
	"strings"
)

type exchange struct {
	kind     string
	bindings []binding
}

type binding struct{ queue, key string }

func (x *exchange) bind(queue, key string) {
	if b := (binding{queue, key}); !slices.Contains(x.bindings, b) {
		x.bindings = append(x.bindings, b)
	}
}

func (x *exchange) unbind(queue string) {
	x.bindings = slices.DeleteFunc(x.bindings, func(b binding) bool { return b.queue == queue })
}

// route returns the queues that a message goes to, each once.
func (b *Broker) route(exchange, key string) []*queue {
	if exchange == "" {
		if q := b.queues[key]; q != nil {
			return []*queue{q}
		}
		return nil
	}
	x := b.exchanges[exchange]
	if x == nil {
		return nil
	}
	var to []*queue
	for _, bound := range x.bindings {
		q := b.queues[bound.queue]
		if q != nil && x.takes(bound.key, key) && !slices.Contains(to, q) {
			to = append(to, q)
		}
	}
	return to
}

func (x *exchange) takes(pattern, key string) bool {
	switch x.kind {
	case "fanout":
		return true
	case "topic":
		return matches(strings.Split(pattern, "."), strings.Split(key, "."))
	}
	return pattern == key
}

// matches is the rule of topic exchanges: * is one word, # any number.
func matches(pattern, words []string) bool {
	switch {
	case len(pattern) == 0:
		return len(words) == 0
	case pattern[0] == "#":
		return matches(pattern[1:], words) || len(words) > 0 && matches(pattern, words[1:])
	case len(words) == 0:
		return false
	}
	return (pattern[0] == "*" || pattern[0] == words[0]) && matches(pattern[1:], words[1:])
}
