package broker

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rsctl/rsctl/pkg/topology"
)

// explore asks the server for the places and exchanges of t's copies that w does
// not know yet. What the user may not see, or is not there, stays unknown.
func (s *Session) explore(ctx context.Context, t *topology.Topology, w *topology.World) error {
	for _, q := range t.Queues {
		if _, known := w.Queues[q.Name]; known || !waits(q) {
			continue
		}
		args, err := s.argumentsOf(ctx, q)
		switch {
		case err == nil:
			w.Queues[q.Name] = args
		case answerOf(err) == nil:
			return err
		}
	}
	for _, x := range t.Exchanges {
		if _, known := w.Exchanges[x.Name]; known || !travelled(t, x) {
			continue
		}
		seen, err := s.typeOfExchange(ctx, x)
		switch {
		case err == nil:
			w.Exchanges[x.Name] = seen
		case answerOf(err) == nil:
			return err
		}
	}
	return nil
}

// eaten warns of waiting queues that somebody consumes: copies are taken before
// they are due.
func (s *Session) eaten(ctx context.Context, queues []topology.Queue) ([]Finding, error) {
	var out []Finding
	for _, q := range queues {
		if !waits(q) || q.Origin.Role == topology.RoleLadder {
			continue
		}
		consumers := 0
		err := s.ask(ctx, func(ch *amqp.Channel) error {
			seen, err := ch.QueueDeclarePassive(q.Name, true, false, false, false, nil)
			consumers = seen.Consumers
			return err
		})
		switch {
		case err != nil && answerOf(err) == nil:
			return out, err
		case err == nil && consumers > 0:
			f := Finding{Kind: kindCopies, Name: q.Name, Origin: q.Origin}
			out = append(out, warn(f, []string{fmt.Sprintf("somebody consumes this waiting queue (consumers: %d): delayed retries of %s are taken before they are due", consumers, quoteAll(q.Origin.Queues))}))
		}
	}
	return out, nil
}

// waits reports whether copies wait in q.
func waits(q topology.Queue) bool {
	return len(q.WaitsFor) > 0 || q.Origin.Role == topology.RoleWaiting || q.Origin.Role == topology.RoleLadder
}

// travelled reports whether copies go through x.
func travelled(t *topology.Topology, x topology.Exchange) bool {
	return x.Origin.Role == topology.RoleLadder || x.Origin.Role == topology.RoleDelay ||
		slices.ContainsFunc(t.Trips, func(trip topology.Trip) bool { return trip.Exchange == x.Name })
}

// argumentsOf reads the arguments of an existing queue off its differences from q.
func (s *Session) argumentsOf(ctx context.Context, q topology.Queue) (map[string]any, error) {
	here, answer, err := s.queuePresence(ctx, q.Name)
	switch {
	case err != nil:
		return nil, err
	case here != there:
		return nil, answer
	}
	ds, err := s.compareQueue(ctx, q)
	if err != nil {
		return nil, err
	}
	if kind := typeOf(ds, string(q.Type)); kind != string(q.Type) {
		q.Arguments = maps.Clone(q.Arguments) // only now the server tells the other differences
		q.Arguments[keyType] = kind
		if ds, err = s.compareQueue(ctx, q); err != nil {
			return nil, err
		}
	}
	args := maps.Clone(q.Arguments)
	for _, d := range ds {
		if d.have == show(nil) {
			delete(args, d.key)
			continue
		}
		args[d.key] = valueOf(d.have)
	}
	return args, nil
}

// valueOf is the value that [show] has rendered.
func valueOf(text string) any {
	if strings.HasPrefix(text, `"`) {
		return strings.TrimSuffix(text[1:], `"`)
	}
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		return n
	}
	return text
}

// typeOfExchange reads the type of an existing exchange off its differences from
// x. One of which the spec gives no type is compared with a direct one.
func (s *Session) typeOfExchange(ctx context.Context, x topology.Exchange) (topology.Exchange, error) {
	here, answer, err := s.exchangePresence(ctx, x.Name)
	switch {
	case err != nil:
		return x, err
	case here != there:
		return x, answer
	}
	if x.Type == "" {
		x.Type = "direct"
	}
	ds, err := s.compareExchange(ctx, x)
	if err != nil {
		return x, err
	}
	if d, differs := differenceOf(ds, keyExchangeType); differs {
		x.Type, x.Arguments = strings.Trim(d.have, `"'`), nil
	}
	return x, nil
}
