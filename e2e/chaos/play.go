package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rsctl/rsctl/e2e/ledger"
	"github.com/rsctl/rsctl/pkg/spec"
	"github.com/rsctl/rsctl/pkg/topology/broker"
)

// play lets the fault strike under load again and again until its time is over,
// at least once, then waits until everything has come to rest and counts.
func play(ctx context.Context, v venue, f fault, p plan) ledger.Row {
	row := ledger.Row{Fault: f.name, MayDie: -1}
	s, err := newStage(ctx, v, f, p.binary)
	if err != nil {
		row.Err = err
		return row
	}
	defer s.close()
	if f.prepare != nil {
		undo, err := f.prepare(ctx, s)
		if err != nil {
			row.Err = err
			return row
		}
		s.onClose(undo)
	}
	row.Strikes, err = s.strikes(ctx, p)
	if f.harmless {
		row.MayDie = s.ended
	}
	rest := s.restAll(ctx)
	found, findErr := s.find()
	found.Dead = append(found.Dead, s.taken...)
	account, accountErr := s.account(found)
	row.Account, row.Err = account, errors.Join(err, rest, findErr, accountErr)
	if p.log != nil {
		for _, proc := range s.processes {
			p.log(f.name, proc)
		}
	}
	return row
}

// A plan says how long a fault is played.
type plan struct {
	binary string
	length time.Duration // of the load; at least one strike
	log    func(fault string, p *process)
}

// long is whether strikes that need half a minute are wanted.
func (p plan) long() bool { return p.length >= 30*time.Second }

// atLeast is how many strikes a fault needs to mean something.
func (p plan) atLeast(f fault) int {
	if p.long() {
		return max(f.rounds, 1)
	}
	return 1
}

// strikes runs load and processes and strikes.
func (s *scenario) strikes(ctx context.Context, p plan) (n int, err error) {
	for range max(s.fault.processes, 1) {
		if err := s.run(); err != nil {
			return 0, err
		}
	}
	loading, stop := context.WithCancel(ctx)
	var loads sync.WaitGroup
	for _, q := range s.fault.queues {
		load := &ledger.Load{Ledger: s.ledger, URLs: s.urls, Queue: q.name, Plan: q.plan, Backlog: backlog}
		if q.innocent {
			load.Pause = 100 * time.Millisecond
		}
		loads.Go(func() { load.Run(loading) })
	}
	defer loads.Wait()
	defer stop()
	if err := s.progress(ctx, 200); err != nil {
		return 0, err
	}
	for began := time.Now(); n < p.atLeast(s.fault) || time.Since(began) < p.length; n++ {
		if err := s.fault.strike(ctx, s, p); err != nil {
			return n, fmt.Errorf("strike %d: %w", n+1, err)
		}
		if err := s.progress(ctx, 100); err != nil {
			return n, fmt.Errorf("after strike %d: %w", n+1, err)
		}
		if err := catchUp(ctx, s); err != nil {
			return n, fmt.Errorf("after strike %d: %w", n+1, err)
		}
	}
	return n, nil
}

// patience bounds every wait for something that has to happen, on a busy machine.
const patience = 4 * time.Minute

var errStalled = errors.New("nothing happened for too long")

// until polls.
func until(ctx context.Context, what string, ok func() bool) error {
	for end := time.Now().Add(patience); !ok(); {
		if time.Now().After(end) {
			return fmt.Errorf("%w: waited %v for %s", errStalled, patience, what)
		}
		if err := pause(ctx, 50*time.Millisecond); err != nil {
			return err
		}
	}
	return nil
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// progress waits for n more runs of hooks.
func (s *scenario) progress(ctx context.Context, n int) error {
	before, err := s.ledger.Runs()
	if err != nil {
		return err
	}
	return s.whileRunning(ctx, fmt.Sprintf("%d more runs of handlers", n), func() bool {
		now, err := s.ledger.Runs()
		return err == nil && now >= before+n
	})
}

// whileRunning is until with the log of the processes in the error.
func (s *scenario) whileRunning(ctx context.Context, what string, ok func() bool) error {
	err := until(ctx, what, ok)
	if errors.Is(err, errStalled) && len(s.processes) > 0 {
		err = fmt.Errorf("%w\n%s", err, s.processes[len(s.processes)-1].tail())
	}
	return err
}

// hiddenFor is how long a message that no queue shows may be on its way.
const hiddenFor = time.Minute

// restAll is rest until every message can be seen: a broker that is busy may take
// its time to bring one from a queue to another.
func (s *scenario) restAll(ctx context.Context) error {
	for end := time.Now().Add(hiddenFor); ; {
		if err := s.rest(ctx); err != nil {
			return err
		}
		if err := s.takeDead(); err != nil {
			return err
		}
		a, err := s.account(ledger.Found{Dead: s.taken})
		if err != nil || len(a.Lost) == 0 {
			return err
		}
		if time.Now().After(end) {
			return s.unseen(ctx)
		}
		if err := s.run(); err != nil {
			return err
		}
	}
}

// unseen is an error that names what the server counts in the work and waiting
// queues after the processes have ended: what nobody can read is not lost.
func (s *scenario) unseen(ctx context.Context) error {
	if err := pause(ctx, statisticsAge); err != nil {
		return err
	}
	var all []error
	for _, q := range s.fault.queues {
		for _, name := range []string{q.name, q.waiting()} {
			if name == "" {
				continue
			}
			var state counts
			if err := s.host.Manage(ctx, "GET", "queues/"+s.host.Name+"/"+name, "", &state); err != nil {
				all = append(all, fmt.Errorf("what %s hides is unknown: %w", name, err))
			} else if state.Messages > 0 {
				all = append(all, fmt.Errorf("%w: the server has %s", errHidden, state.in(name)))
			}
		}
	}
	return errors.Join(all...)
}

// statisticsAge is how old the numbers of the management API may be, and a bit.
const statisticsAge = 11 * time.Second

var errHidden = errors.New("messages are left that no queue shows")

// counts are the management API's numbers of a queue. Messages includes those
// that a quorum queue dead-letters at least once and has not got rid of yet.
type counts struct {
	Messages int `json:"messages"`
	Ready    int `json:"messages_ready"`
	Unacked  int `json:"messages_unacknowledged"`
}

func (c counts) in(queue string) string {
	return fmt.Sprintf("%d messages in %s: %d ready, %d unacked, %d on the way to its dead-letter queue",
		c.Messages, queue, c.Ready, c.Unacked, c.Messages-c.Ready-c.Unacked)
}

func (s *scenario) account(found ledger.Found) (ledger.Account, error) {
	return s.ledger.Account(found, ledger.Rules{Cap: attempts, Gone: s.gone, Innocent: innocent})
}

// takeDead takes out the dead letters that are there.
func (s *scenario) takeDead() error {
	return s.withChannel(func(ch lent) error {
		for _, q := range s.fault.queues {
			if err := take(ch, q.dead(), &s.taken); err != nil {
				return fmt.Errorf("read %s: %w", q.dead(), err)
			}
		}
		return nil
	})
}

// rest waits until no queue but the dead-letter queues holds a ready message, for
// a few looks in a row, and stops the processes. What they hand back, because it
// was kept for a while after a failure, is worked off by one more.
func (s *scenario) rest(ctx context.Context) error {
	for range 5 {
		if err := errors.Join(s.quiet(ctx), s.stop()); err != nil {
			return err
		}
		left := 0
		err := until(ctx, "the queues to be counted", func() bool {
			n, err := s.ready()
			left = n
			return err == nil
		})
		if err != nil || left == 0 {
			return err
		}
		if err := s.run(); err != nil {
			return err
		}
	}
	return fmt.Errorf("%w: the queues do not drain", errStalled)
}

func (s *scenario) quiet(ctx context.Context) error {
	looks := 30 // longer than any delay of the load
	if s.fault.hides {
		looks = 80 // longer than a queue takes to try again to dead-letter
	}
	quiet := 0
	return s.whileRunning(ctx, "the queues to drain", func() bool {
		if n, err := s.ready(); err != nil || n > 0 {
			quiet = 0
		} else {
			quiet++
		}
		return quiet >= looks
	})
}

// stop ends the processes that run.
func (s *scenario) stop() error {
	var all []error
	for _, p := range s.processes {
		select {
		case <-p.done: // it was killed
		default:
			all = append(all, p.stop())
		}
	}
	return errors.Join(all...)
}

// ready is how many messages are ready in the work and waiting queues.
func (s *scenario) ready() (int, error) {
	var names []string
	for _, q := range s.fault.queues {
		names = append(names, q.name, q.waiting())
	}
	return s.readyIn(names...)
}

// readyIn counts the messages that are ready in queues; "" is none.
func (s *scenario) readyIn(names ...string) (total int, err error) {
	err = s.withChannel(func(ch lent) error {
		for _, name := range names {
			if name == "" {
				continue
			}
			state, err := ch.QueueDeclarePassive(name, true, false, false, false, nil)
			if err != nil {
				return err
			}
			total += state.Messages
		}
		return nil
	})
	return total, err
}

// find empties every queue.
func (s *scenario) find() (found ledger.Found, err error) {
	err = s.withChannel(func(ch lent) error {
		for _, q := range s.fault.queues {
			for name, ids := range map[string]*[]string{q.name: &found.Work, q.waiting(): &found.Waiting, q.dead(): &found.Dead} {
				if err := take(ch, name, ids); err != nil {
					return fmt.Errorf("read %s: %w", name, err)
				}
			}
		}
		return nil
	})
	return found, err
}

// withChannel lends a channel on a connection that ends when a question has no
// answer: a node that has just been killed, or is about to start, may give none.
func (s *scenario) withChannel(f func(lent) error) error {
	conn, err := dial(s.urls)
	if err != nil {
		return err
	}
	defer conn.Close()
	limit := ledger.CloseAfter(conn, ledger.Silence)
	defer limit.Stop()
	ch, err := conn.Channel()
	if err != nil {
		return err
	}
	return f(lent{ch, limit})
}

// dial connects to a node that answers, as rsctl does: no message ends such a
// connection, whatever its headers are.
func dial(urls []string) (*amqp.Connection, error) {
	b := spec.Broker{URL: spec.Text{Value: urls[0]}}
	for _, url := range urls {
		b.URLs = append(b.URLs, spec.Text{Value: url})
	}
	return broker.Dial(context.Background(), b, "chaos")
}

// lent is a channel of withChannel; limit is reset where there are many questions.
type lent struct {
	*amqp.Channel
	limit *time.Timer
}

// take removes every message of a queue and appends their ids. A quorum queue
// may need a moment before it shows what the server has just moved there.
func take(ch lent, queue string, ids *[]string) error {
	if queue == "" {
		return nil
	}
	for empty := 0; empty < 3; {
		ch.limit.Reset(ledger.Silence)
		d, ok, err := ch.Get(queue, true)
		if err != nil {
			return err
		}
		if !ok {
			empty++
			time.Sleep(20 * time.Millisecond)
			continue
		}
		*ids = append(*ids, d.MessageId)
	}
	return nil
}
