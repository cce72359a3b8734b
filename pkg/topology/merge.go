package topology

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"

	"github.com/rsctl/rsctl/pkg/spec"
)

// refer notes that q uses an exchange. One that the file does not declare must
// be there already, as amq.topic is. The default exchange always is.
func (c *compiler) refer(name string, q *spec.Queue, at spec.Pos) {
	if name == "" {
		return
	}
	if i, ok := c.exchanges[name]; ok {
		c.join(ofExchange, &c.out.Exchanges[i].Origin, name, q.Name)
		return
	}
	c.addExchange(Exchange{
		Name: name, External: true,
		Origin: Origin{Role: RoleExchange, Queues: []string{q.Name}, Pos: at},
	})
}

func (c *compiler) addExchange(x Exchange) {
	i, ok := c.exchanges[x.Name]
	if !ok {
		c.exchanges[x.Name] = len(c.out.Exchanges)
		c.out.Exchanges = append(c.out.Exchanges, x)
		return
	}
	have := &c.out.Exchanges[i]
	switch {
	case c.inFile[x.Name]:
	case have.External && !x.External:
		// Only referred to so far; here comes the declaration.
		x.Origin.Queues = c.union(list{ofExchange, x.Name, needs}, have.Origin.Queues, x.Origin.Queues)
		*have = x
		return
	case !sameExchange(*have, x):
		c.clash("exchange", x.Name, have.Origin, x.Origin)
	}
	c.join(ofExchange, &have.Origin, x.Name, x.Origin.Queues...)
}

// addDerived adds a queue that the file does not declare; one that it does is
// only noted to be needed.
func (c *compiler) addDerived(q Queue) {
	if d, ok := c.declared[q.Name]; ok {
		if _, added := c.queues[q.Name]; !added {
			c.addQueue(workQueue(d, delayNeeds(d).arguments))
		}
		have := &c.out.Queues[c.queues[q.Name]]
		c.joinQueue(have, q)
		return
	}
	c.addQueue(q)
}

func (c *compiler) addQueue(q Queue) {
	i, ok := c.queues[q.Name]
	if !ok {
		c.queues[q.Name] = len(c.out.Queues)
		c.out.Queues = append(c.out.Queues, q)
		return
	}
	have := &c.out.Queues[i]
	if have.Origin.Role != RoleWork && !sameQueue(*have, q) {
		c.clash("queue", q.Name, have.Origin, q.Origin)
	}
	c.joinQueue(have, q)
}

// joinQueue notes in have who else needs it, and for what.
func (c *compiler) joinQueue(have *Queue, q Queue) {
	c.join(ofQueue, &have.Origin, have.Name, q.Origin.Queues...)
	have.DeadLetterOf = c.union(list{ofQueue, have.Name, deadLetters}, have.DeadLetterOf, q.DeadLetterOf)
	have.WaitsFor = c.union(list{ofQueue, have.Name, waits}, have.WaitsFor, q.WaitsFor)
}

func (c *compiler) addBinding(b Binding) {
	key := bindingKey(b)
	if i, ok := c.bindings[key]; ok {
		c.join(ofBinding, &c.out.Bindings[i].Origin, key, b.Origin.Queues...)
		return
	}
	c.bindings[key] = len(c.out.Bindings)
	c.out.Bindings = append(c.out.Bindings, b)
}

// bindingKey is what the server tells bindings apart by. JSON writes map keys
// in order.
func bindingKey(b Binding) string {
	args, err := json.Marshal(b.Arguments)
	if err != nil {
		args = fmt.Append(nil, b.Arguments) // NaN; fmt sorts keys, too
	}
	return fmt.Sprintf("%q %q %q %t %s", b.Source, b.Destination, b.RoutingKey, b.ToExchange, args)
}

// clash reports an object that two queues need with different settings.
func (c *compiler) clash(kind, name string, first, second Origin) {
	if len(first.Queues) == 0 || len(second.Queues) == 0 {
		return
	}
	c.problems = append(c.problems, spec.Problem{
		Pos: second.Pos, Severity: spec.Error, Rule: "shared-object",
		Message: fmt.Sprintf("%s %q is needed as the %s of %q and, with other settings, as the %s of %q",
			kind, name, first.Role, first.Queues[0], second.Role, second.Queues[0]),
		Hint: "give one of them another name, or declare it in this file",
	})
}

func sameExchange(a, b Exchange) bool {
	a.Origin, b.Origin = Origin{}, Origin{}
	return reflect.DeepEqual(a, b)
}

func sameQueue(a, b Queue) bool {
	a.Origin, b.Origin = Origin{Role: a.Origin.Role}, Origin{Role: b.Origin.Role}
	a.DeadLetterOf, b.DeadLetterOf = nil, nil
	a.WaitsFor, b.WaitsFor = nil, nil
	return reflect.DeepEqual(a, b)
}

// list names one list of queues of one object: a ladder is needed by thousands.
type list struct {
	kind objectKind
	name string
	part listPart
}

type (
	objectKind int
	listPart   int
)

const (
	ofExchange objectKind = iota
	ofQueue
	ofBinding
)

const (
	needs listPart = iota
	deadLetters
	waits
)

func (c *compiler) join(kind objectKind, o *Origin, name string, queues ...string) {
	o.Queues = c.union(list{kind, name, needs}, o.Queues, queues)
}

// union appends what is new. The first time it takes memory of its own: objects
// that come from one place share theirs.
func (c *compiler) union(of list, have, more []string) []string {
	if len(more) == 0 {
		return have
	}
	seen := c.lists[of]
	if seen == nil {
		seen = make(map[string]bool, len(have)+len(more))
		for _, s := range have {
			seen[s] = true
		}
		c.lists[of] = seen
		have = slices.Clip(have)
	}
	for _, s := range more {
		if !seen[s] {
			seen[s] = true
			have = append(have, s)
		}
	}
	return have
}
