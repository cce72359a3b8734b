package runtime

import (
	"context"
	"slices"
	"sync"
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rsctl/rsctl/pkg/hooks"
	"github.com/rsctl/rsctl/pkg/settle"
)

const (
	methodGetOK    = 71
	methodGetEmpty = 72
)

// steps are the answers about how a queue is read, in order, each once in a row.
type steps struct {
	mu   sync.Mutex
	seen []string
}

func (s *steps) hear(_ string, method uint16, _ []byte) bool {
	name := map[uint16]string{methodGetOK: "got", methodGetEmpty: "empty", methodConsumeOK: "consuming", methodCancelOK: "cancelled"}[method]
	s.mu.Lock()
	defer s.mu.Unlock()
	if name != "" && (len(s.seen) == 0 || s.seen[len(s.seen)-1] != name) {
		s.seen = append(s.seen, name)
	}
	return false
}

func (s *steps) are(want ...string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Equal(s.seen, want)
}

// ackEach records each message of a batch and acks them all.
func ackEach(r *recorder, ms []hooks.Message) ([]hooks.Outcome, error) {
	for _, m := range ms {
		if _, err := r.Handle(context.Background(), m); err != nil {
			return nil, err
		}
	}
	return []hooks.Outcome{{Verdict: hooks.Ack}}, nil
}

// Where a consumer that is cancelled with a message in hand may keep it for ever, a
// queue has none until it may have all of its prefetch.
func TestQueueBeginsWithoutAConsumerThatWouldHaveToBeCancelled(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		messages, batch int
		polling, narrow []string
	}{
		"with messages":            {5, 0, []string{"got", "consuming"}, []string{"consuming", "cancelled", "consuming"}},
		"with messages in batches": {5, 3, []string{"got", "consuming"}, []string{"consuming", "cancelled", "consuming"}},
		"empty":                    {0, 0, []string{"empty", "consuming"}, []string{"consuming"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inMemory(t, func(t *testing.T, b *bench) {
				hook := &recorder{reply: always(hooks.Ack)}
				q := Queue{Policy: capped(b, settle.Quorum, 3), Hook: hook, Concurrency: 4}
				if test.batch > 0 {
					q.Batch = Batch{Size: test.batch}
					q.Hook = batchFunc(func(ms []hooks.Message) ([]hooks.Outcome, error) {
						return ackEach(hook, ms)
					})
				}
				for range test.messages {
					b.publish(q.Policy.Queue, amqp.Publishing{})
				}
				s := &steps{}
				tp := &tap{drop: s.hear}
				b.start(tp.through(b, b.config(q)))
				want := test.polling
				if handsBackFree(b.conn) {
					want = test.narrow
				}
				b.eventually("the queue to be consumed", func() bool { return len(hook.seen()) == test.messages && s.are(want...) })
				b.publish(q.Policy.Queue, amqp.Publishing{})
				b.eventually("one more message", func() bool { return len(hook.seen()) == test.messages+1 })
			})
		})
	}
}

// A stop while a queue is polled hands out no further message.
func TestStopEndsThePollingOfAQueue(t *testing.T) {
	t.Parallel()
	inMemory(t, func(t *testing.T, b *bench) {
		p := capped(b, settle.Quorum, 3)
		for range 5 {
			b.publish(p.Queue, amqp.Publishing{})
		}
		release := make(chan struct{})
		hook := &recorder{reply: func(hooks.Message) hooks.Outcome { <-release; return hooks.Outcome{Verdict: hooks.Ack} }}
		run := b.start(b.config(Queue{Policy: p, Hook: hook, Prefetch: 2}))
		b.eventually("a handler to run", func() bool { return len(hook.seen()) == 1 })
		run.drain()
		close(release)
		if err := run.wait(); err != nil {
			t.Errorf("Run() = %v", err)
		}
		b.eventually("what was not handled to be back in the queue", func() bool { return b.ready(p.Queue)+len(hook.seen()) == 5 })
		if n := len(hook.seen()); n > 3 {
			t.Errorf("%d messages of 5 were handled", n)
		}
	})
}
