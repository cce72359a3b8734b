package runtime

import (
	"fmt"
	"slices"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rsctl/rsctl/pkg/hooks"
	"github.com/rsctl/rsctl/pkg/settle"
	"github.com/rsctl/rsctl/pkg/topology"
)

// replayDelay stands in for a row's delay, so that a replay takes no half minute.
const replayDelay = 300 * time.Millisecond

// TestEveryRowOfTheTable holds the decision table, which rsctl explain and the
// docs print, against a real broker: each row's delivery is brought about, the
// hook answers as the row says, and the message must end as its steps promise.
func TestEveryRowOfTheTable(t *testing.T) {
	t.Parallel()
	modes := modesOf(t)
	for _, kind := range []settle.Type{settle.Classic, settle.Quorum} {
		for _, attempts := range []int{0, 1, 3} {
			for _, mode := range modes {
				if mode == "timer" && kind == settle.Quorum || mode == "native" && kind == settle.Classic {
					continue // the spec refuses it
				}
				for i, row := range settle.Table(topology.Policy(specQueue("q", kind, attempts, mode))) {
					if row.Outcome == "retry_after" {
						continue // a delay that is clamped to weeks
					}
					name := fmt.Sprintf("%s/cap %d/%s/%d %s %s", kind, attempts, mode, i, row.Outcome, row.When)
					t.Run(name, func(t *testing.T) {
						t.Parallel()
						b := newBench(t)
						replayRow(b, b.declared(specQueue(b.name(), kind, attempts, mode)), row)
					})
				}
			}
		}
	}
}

// tablePolicy is a policy whose queues are not there yet.
func tablePolicy(kind settle.Type, attempts int, mode string) settle.Policy {
	p := settle.Policy{Queue: "q", Type: kind, MaxAttempts: attempts}
	if attempts > 0 {
		p.DeadLetter = "q.dead"
	}
	switch mode {
	case "timer":
		p.Delay = &settle.Delay{Strategy: mode, Mode: settle.ModeTimer}
	case "hold":
		p.Delay = &settle.Delay{Strategy: mode, Mode: settle.ModeHold}
	case "dlx_ttl":
		p.Delay = &settle.Delay{Strategy: mode, Mode: settle.ModeCopy, Route: waitIn("q.retry")}
	}
	return p
}

func waitIn(queue string) func(time.Duration) settle.Target {
	return func(d time.Duration) settle.Target {
		return settle.Target{Key: queue, Queue: queue, Expiration: d}
	}
}

// real declares the queues of p and returns p with their names.
func (b *bench) real(p settle.Policy) settle.Policy {
	q := settle.Policy{Type: p.Type, MaxAttempts: p.MaxAttempts, AckOriginal: p.AckOriginal, RetryExchange: p.RetryExchange, Backoff: p.Backoff}
	if p.MaxAttempts > 0 {
		q = capped(b, p.Type, p.MaxAttempts)
	} else {
		q.Queue = b.queue(p.Type, nil)
	}
	if p.Delay != nil {
		d := *p.Delay
		q.Delay = &d
		if d.Mode == settle.ModeCopy {
			waiting := b.queue(p.Type, amqp.Table{"x-dead-letter-exchange": "", "x-dead-letter-routing-key": q.Queue})
			q.Delay.Route = waitIn(waiting)
		}
	}
	return q
}

func replayRow(b *bench, p settle.Policy, row settle.Row) {
	t := b.t
	b.bringAbout(p, row.Facts)
	answer := row.Answer
	if answer.Delay > 0 {
		answer.Delay = replayDelay
	}
	hook := &recorder{}
	hook.reply = func(hooks.Message) hooks.Outcome {
		if len(hook.seen()) == 1 {
			return answer
		}
		return hooks.Outcome{Verdict: hooks.Ack}
	}
	run := b.start(b.config(Queue{Policy: p, Hook: hook}))

	want := b.expectation(p, row, answer)
	b.eventually(fmt.Sprintf("%d handler runs", want.runs), func() bool { return len(hook.seen()) >= want.runs })
	if want.dead {
		dead := b.get(p.DeadLetter)
		if _, ours := dead.Headers["x-rsctl-reason"]; ours != want.reason {
			t.Errorf("dead letter has our reason: %v, want %v (%v)", ours, want.reason, dead.Headers)
		}
	}
	if err := run.stop(); err != nil {
		t.Errorf("Run() = %v", err)
	}
	calls := hook.seen()
	if len(calls) != want.runs {
		t.Fatalf("handler ran %d times, want %d", len(calls), want.runs)
	}
	if calls[0].Attempt != row.Facts.Attempt {
		t.Errorf("the row's attempt was %d, want %d", calls[0].Attempt, row.Facts.Attempt)
	}
	if want.runs == 2 {
		if calls[1].Attempt != want.next || calls[1].Redelivered != want.redelivered {
			t.Errorf("came back as attempt %d, redelivered %v; want %d, %v", calls[1].Attempt, calls[1].Redelivered, want.next, want.redelivered)
		}
		if back := calls[1].at.Sub(calls[0].at); back < want.after {
			t.Errorf("came back after %v, want %v or more", back, want.after)
		}
	}
	left := b.ready(p.Queue)
	if p.DeadLetter != "" {
		left += b.ready(p.DeadLetter)
	}
	if left != 0 {
		t.Errorf("%d messages are left over", left)
	}
}

// bringAbout publishes a message and returns it to its queue until its next
// delivery has the facts.
func (b *bench) bringAbout(p settle.Policy, f settle.Facts) {
	b.t.Helper()
	msg := amqp.Publishing{MessageId: "row", Body: []byte("body")}
	if f.Counted > 0 {
		msg.Headers = amqp.Table{"x-ruststream-retry-count": settle.FormatCount(f.Counted)}
	}
	b.publish(p.Queue, msg)
	returns := 0
	if f.Redelivered {
		returns = 1
	}
	if p.Type == settle.Quorum {
		returns = f.Attempt - 1 - f.Counted
	}
	for range returns {
		b.eventually("the message to return", func() bool {
			d, ok, err := b.ch.Get(p.Queue, false)
			if err != nil {
				b.t.Fatal(err)
			}
			if ok {
				err = d.Reject(true)
			}
			return ok && err == nil
		})
	}
}

// ending is what the broker must show for a row's steps.
type ending struct {
	runs        int // of the hook, the last of which acks when there are two
	next        int // attempt of the second run
	redelivered bool
	after       time.Duration
	dead        bool // ends in the dead-letter queue
	reason      bool // with our headers
}

// expectation reads the row's steps as RabbitMQ's rules have them.
func (b *bench) expectation(p settle.Policy, row settle.Row, answer hooks.Outcome) ending {
	steps := settle.Decide(row.Facts, answer, p)
	again := ending{runs: 2, next: row.Facts.Attempt + 1}
	spent := p.MaxAttempts > 0 && row.Facts.Attempt >= p.MaxAttempts
	for _, s := range steps {
		switch s := s.(type) {
		case settle.Copy:
			if s.Purpose == settle.ForDeadLetter {
				return ending{runs: 1, dead: true, reason: true}
			}
			again.after = max(s.To.Expiration, s.To.XDelay)
			return again
		case settle.Later:
			again.after = s.After
			return again
		case settle.Wait:
			again.after = s.For
		case settle.Pace:
			again.after = 0
		}
	}
	switch last := steps[len(steps)-1].(type) {
	case settle.Reject:
		if !last.Requeue || (spent && p.Type == settle.Quorum) {
			return ending{runs: 1, dead: p.Type == settle.Quorum && p.DeadLetter != ""}
		}
		if _, limited := p.Limit.On(b.major()); limited && p.MaxAttempts == 0 && (p.PastLimit(row.Facts) || p.PastDefault(row.Facts)) {
			return ending{runs: 1} // dropped by the server
		}
		again.redelivered = true
		if p.Delay != nil && p.Delay.Mode == settle.ModeNative {
			again.after = replayDelay
		}
		if p.Type == settle.Classic && !slices.ContainsFunc(steps, isCopy) {
			again.next = row.Facts.Attempt // a plain requeue is not counted
		}
		return again
	default:
		return ending{runs: 1}
	}
}

// major is the first number of the server's version.
func (b *bench) major() int {
	version, _ := b.conn.Properties["version"].(string)
	return topology.Server{Version: version}.Major()
}

func isCopy(s settle.Step) bool {
	_, ok := s.(settle.Copy)
	return ok
}
