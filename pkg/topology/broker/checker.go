package broker

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"

	"github.com/rsctl/rsctl/pkg/topology"
)

// checker is Check's run: an attempt that never declares, with what the
// management API showed.
type checker struct {
	*attempt
	view *view // nil: none
}

func (c *checker) exchange(ctx context.Context, x topology.Exchange) (Finding, error) {
	return c.lookExchange(ctx, x)
}

func (c *checker) queue(ctx context.Context, q topology.Queue) (Finding, error) {
	if refused, yes := unfit(q, c.srv); yes {
		return refused, nil
	}
	look := c.lookQueue
	if q.AcceptExisting {
		look = c.lookNamed
	}
	f, err := look(ctx, q)
	if err != nil || c.view == nil {
		return f, err
	}
	return c.through(f, q), nil
}

// lookNamed checks a dead-letter queue that the spec only names.
func (c *checker) lookNamed(ctx context.Context, q topology.Queue) (Finding, error) {
	f, here, err := c.seeQueue(ctx, q)
	if err != nil || here != there {
		return f, err
	}
	return c.lookDeadLetter(ctx, q)
}

// through adds what the management API shows: policies, and type and arguments
// where the user may not ask the server itself.
func (c *checker) through(f Finding, q topology.Queue) Finding {
	seen, ok := c.view.queues[q.Name]
	if f.State == NotVerified && f.Code == codeAccessRefused {
		f = c.instead(f, q, seen, ok)
	}
	if !ok || f.failed() || f.State == NotVerified {
		return f
	}
	return warn(f, policyLosses(q, c.view.policyOf(q.Name), c.srv))
}

// instead judges a queue by the management API alone.
func (c *checker) instead(f Finding, q topology.Queue, seen apiQueue, ok bool) Finding {
	if !ok {
		c.markAbsent(f)
		return gone(f)
	}
	f.State, f.Detail, f.Code = OK, "", 0
	if seen.Type == "" {
		seen.Type = string(q.Type)
	}
	ds := apiDifferences(q, seen)
	switch {
	case q.AcceptExisting:
		return warn(f, c.losses(ds))
	case len(ds) > 0:
		return conflict(f, ds, nil)
	}
	return warnReturned(c.warnDeadLetter(f, q), q, c.srv)
}

// apiDifferences compares q with what the management API shows. Of an external
// queue only what q names counts.
func apiDifferences(q topology.Queue, seen apiQueue) []difference {
	if seen.Type != string(q.Type) {
		return []difference{{keyType, seen.Type, string(q.Type)}}
	}
	var ds []difference
	add := func(key, have, want string) {
		if have != want {
			ds = append(ds, difference{key, have, want})
		}
	}
	if !q.External {
		add("durable", strconv.FormatBool(seen.Durable), strconv.FormatBool(q.Durable))
		add("auto_delete", strconv.FormatBool(seen.AutoDelete), strconv.FormatBool(q.AutoDelete))
	}
	for _, key := range unionKeys(q.Arguments, seen.Arguments) {
		_, named := q.Arguments[key]
		if key == keyType || q.External && !named {
			continue
		}
		add(key, show(plain(seen.Arguments[key])), show(q.Arguments[key]))
	}
	return ds
}

// bindings compares bindings with the management API; AMQP has no question for
// them that would not create one. Without it they are one finding together.
func (c *checker) bindings(list []topology.Binding) []Finding {
	var out []Finding
	hidden := 0
	for _, b := range list {
		f := bindingFinding(b)
		end, lost := c.lostEnd(b)
		switch {
		case lost:
			f.State, f.Detail = Skipped, "needs "+end
		case c.view == nil || c.view.bindings == nil:
			hidden++
			continue
		case c.view.bindings[apiKey(b)]:
			f.State = OK
		default:
			f = gone(f)
		}
		out = append(out, f)
	}
	if hidden > 0 {
		out = append(out, Finding{
			Kind: kindBinding, Name: fmt.Sprintf("%d of %d", hidden, len(list)), State: NotVerified,
			Detail: "bindings and policies are visible only through the management API",
			Hint:   "set broker.management_url",
		})
	}
	return out
}

func apiKey(b topology.Binding) string {
	kind := kindQueue
	if b.ToExchange {
		kind = kindExchange
	}
	return apiBinding{
		Source: b.Source, Destination: b.Destination, DestinationType: kind,
		RoutingKey: b.RoutingKey, Arguments: b.Arguments,
	}.key()
}

// unionKeys are the keys of both, sorted.
func unionKeys(a, b map[string]any) []string {
	all := maps.Clone(a)
	if all == nil {
		all = map[string]any{}
	}
	maps.Copy(all, b)
	return slices.Sorted(maps.Keys(all))
}

// plain turns the JSON number of an argument into the int64 it was declared as.
func plain(v any) any {
	if n, ok := v.(float64); ok && n == math.Trunc(n) && math.Abs(n) < 1<<53 {
		return int64(n)
	}
	return v
}
