package runtime

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rsctl/rsctl/pkg/hooks"
	"github.com/rsctl/rsctl/pkg/settle"
)

// From RabbitMQ 4.3 on, a quorum queue counts basic.reject and not basic.nack,
// and basic.nack or multiple would settle what no hook has answered for.
func TestOutcomesAreSettledByOneFrameEachAndNeverByNack(t *testing.T) {
	t.Parallel()
	answers := func(o ...hooks.Outcome) func(hooks.Message) hooks.Outcome {
		return func(m hooks.Message) hooks.Outcome { return o[min(m.Attempt, len(o))-1] }
	}
	ack, drop := hooks.Outcome{Verdict: hooks.Ack}, hooks.Outcome{Verdict: hooks.Drop}
	retry, failed := hooks.Outcome{Verdict: hooks.Retry}, hooks.Outcome{}
	later := hooks.Outcome{Verdict: hooks.RetryAfter, Delay: time.Millisecond}
	tests := []struct {
		name     string
		policy   settle.Policy
		reply    func(hooks.Message) hooks.Outcome
		consume  []string
		publish  int
		deadEnds bool
	}{
		{"a success", tablePolicy(settle.Classic, 3, "none"), answers(ack), []string{"ack"}, 0, false},
		{"a success on a quorum queue", tablePolicy(settle.Quorum, 3, "none"), answers(ack), []string{"ack"}, 0, false},
		{"a drop", tablePolicy(settle.Classic, 3, "none"), answers(drop), []string{"reject"}, 0, false},
		{"failures on a quorum queue, which counts them", tablePolicy(settle.Quorum, 3, "none"), answers(failed, retry, failed),
			[]string{"reject requeue", "reject requeue", "reject requeue"}, 0, true},
		{"failures on a classic queue, by copies", tablePolicy(settle.Classic, 2, "none"), answers(retry, failed),
			[]string{"reject", "reject"}, 2, true},
		{"failures whose originals are acked", ackOriginal(tablePolicy(settle.Classic, 2, "none")), answers(retry, failed),
			[]string{"ack", "ack"}, 2, true},
		{"a delayed retry in a waiting queue", tablePolicy(settle.Classic, 3, "dlx_ttl"), answers(later, ack),
			[]string{"ack", "ack"}, 1, false},
		{"a delayed retry of a quorum queue, counted by copies", tablePolicy(settle.Quorum, 2, "dlx_ttl"), answers(later, failed),
			[]string{"ack", "ack"}, 2, true},
		{"a delayed retry held in the process", tablePolicy(settle.Classic, 3, "timer"), answers(later, ack),
			[]string{"ack", "reject"}, 1, false},
		{"a requeue without a cap", tablePolicy(settle.Classic, 0, "none"), requeueOnce(),
			[]string{"ack", "reject requeue"}, 0, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			inMemory(t, func(t *testing.T, b *bench) {
				p := b.exactly(tt.policy)
				b.publish(p.Queue, amqp.Publishing{MessageId: "m"})
				hook := &recorder{reply: tt.reply}
				var tp tap
				run := b.start(tp.through(b, b.config(Queue{Policy: p, Hook: hook})))
				b.eventually(fmt.Sprintf("%d settlements", len(tt.consume)), func() bool { return len(tp.settlements()) >= len(tt.consume) })
				if tt.deadEnds {
					b.get(p.DeadLetter)
				}
				if err := run.stop(); err != nil {
					t.Errorf("Run() = %v", err)
				}
				// A copy may be back before its original's frame is out.
				if got := slices.Sorted(slices.Values(tp.settlements())); !slices.Equal(got, tt.consume) {
					t.Errorf("sent to the broker: %q, want %q", got, tt.consume)
				}
				if got := tp.methods("publish"); !slices.Equal(got, slices.Repeat([]string{"publish"}, tt.publish)) {
					t.Errorf("sent on the other connection: %q, want %d copies", got, tt.publish)
				}
			})
		})
	}
}

func ackOriginal(p settle.Policy) settle.Policy {
	p.AckOriginal = true
	return p
}

func requeueOnce() func(hooks.Message) hooks.Outcome {
	return func(m hooks.Message) hooks.Outcome {
		if m.Redelivered {
			return hooks.Outcome{Verdict: hooks.Ack}
		}
		return hooks.Outcome{Verdict: hooks.Retry}
	}
}

func TestDeliveryThatNoHookHasSeenIsHandedBackByNack(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		hook func(started chan<- struct{}, release <-chan struct{}) hooks.Hook
		want []string
	}{
		{"while other handlers finish", func(started chan<- struct{}, release <-chan struct{}) hooks.Hook {
			return hooks.Func(func(context.Context, hooks.Message) (hooks.Outcome, error) {
				started <- struct{}{}
				<-release
				return hooks.Outcome{Verdict: hooks.Ack}, nil
			})
		}, []string{"ack", "nack requeue", "nack requeue", "nack requeue"}},
		{"when its handler cannot be run", func(started chan<- struct{}, _ <-chan struct{}) hooks.Hook {
			return hooks.Func(func(context.Context, hooks.Message) (hooks.Outcome, error) {
				started <- struct{}{}
				return hooks.Outcome{}, errGone
			})
		}, []string{"nack requeue", "nack requeue", "nack requeue", "nack requeue"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			inMemory(t, func(t *testing.T, b *bench) {
				p := capped(b, settle.Quorum, 3)
				for i := range 4 {
					b.publish(p.Queue, amqp.Publishing{MessageId: fmt.Sprint(i)})
				}
				started, release := make(chan struct{}, 100), make(chan struct{})
				var tp tap
				cfg := tp.through(b, b.config(Queue{Policy: p, Hook: tt.hook(started, release), Prefetch: 4}))
				cfg.ShutdownTimeout = handsBackSoon
				run := b.start(cfg)
				<-started
				b.eventually("the prefetch to fill", func() bool { return b.ready(p.Queue) == 0 })
				run.drain()
				b.eventually("three messages to come back", func() bool { return b.ready(p.Queue) >= 3 })
				close(release)
				if err := run.stop(); err != nil {
					t.Errorf("Run() = %v", err)
				}
				got := tp.settlements()
				slices.Sort(got)
				if !slices.Equal(got, tt.want) {
					t.Errorf("sent to the broker: %q, want %q", got, tt.want)
				}
			})
		})
	}
}

func TestWithoutConfirmsNoOriginalIsGivenUp(t *testing.T) {
	t.Parallel()
	inMemory(t, func(t *testing.T, b *bench) {
		p := capped(b, settle.Classic, 50)
		ids := map[string]bool{}
		for i := range 3 {
			id := fmt.Sprint("m", i)
			ids[id] = true
			b.publish(p.Queue, amqp.Publishing{MessageId: id})
		}
		tp := tap{drop: func(purpose string, method uint16, _ []byte) bool {
			return purpose == "publish" && (method == methodAck || method == methodNack)
		}}
		cfg := tp.through(b, b.config(Queue{Policy: p, Hook: &recorder{reply: always(hooks.Retry)}, Concurrency: 3}))
		cfg.ConfirmTimeout = 50 * time.Millisecond
		run := b.start(cfg)
		b.eventually("six copies that are not confirmed", func() bool { return b.log.count("no confirm in time") >= 6 })
		if err := run.stop(); err != nil {
			t.Errorf("Run() = %v", err)
		}
		for _, m := range tp.settlements() {
			if !strings.HasSuffix(m, "requeue") {
				t.Errorf("an original ended by %q although its copy was not confirmed", m)
			}
		}
		for len(ids) > 0 { // one that is lost is waited for in vain
			delete(ids, b.get(p.Queue).MessageId)
		}
	})
}

// settlements are the frames that settle deliveries. The one by which a channel
// hands back at its end what nobody has read is none of them: it finds nothing.
func (t *tap) settlements() []string {
	return slices.DeleteFunc(t.methods("consume"), func(m string) bool { return m == "nack multiple requeue" })
}
