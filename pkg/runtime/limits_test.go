package runtime

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rsctl/rsctl/pkg/hooks"
	"github.com/rsctl/rsctl/pkg/settle"
)

func TestALostAckIsRememberedByMessageIDAndBody(t *testing.T) {
	t.Parallel()
	msg := func(id, body string) *amqp.Delivery { return &amqp.Delivery{MessageId: id, Body: []byte(body)} }
	tests := []struct {
		name       string
		lost, back *amqp.Delivery
		after      time.Duration
		remembered bool
		taken      bool
	}{
		{"the same message is known again", msg("a", "x"), msg("a", "x"), 0, true, true},
		{"without a message_id nothing is remembered", msg("", "x"), msg("", "x"), 0, false, false},
		{"another message_id is another message", msg("a", "x"), msg("b", "x"), 0, true, false},
		{"a producer that uses an id twice loses nothing", msg("a", "x"), msg("a", "y"), 0, true, false},
		{"it is known for a while", msg("a", "x"), msg("a", "x"), rememberFor - time.Second, true, true},
		{"and then forgotten", msg("a", "x"), msg("a", "x"), rememberFor, true, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				l := newLostAcks()
				if l.take(tt.back) {
					t.Error("taken before anything was lost")
				}
				if got := l.remember(tt.lost); got != tt.remembered {
					t.Errorf("remember() = %v", got)
				}
				time.Sleep(tt.after)
				if got := l.take(tt.back); got != tt.taken {
					t.Errorf("take() = %v, want %v", got, tt.taken)
				}
				if l.take(tt.back) {
					t.Error("taken twice")
				}
			})
		})
	}
}

func TestTheMemoryOfLostAcksIsBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newLostAcks()
		for i := range rememberAcks {
			if !l.remember(&amqp.Delivery{MessageId: fmt.Sprint(i)}) {
				t.Fatalf("forgot number %d", i)
			}
		}
		more := &amqp.Delivery{MessageId: "more"}
		if l.remember(more) {
			t.Error("remembered more than the bound")
		}
		time.Sleep(rememberFor)
		if !l.remember(more) || !l.take(more) {
			t.Error("old ones made no room")
		}
		if n := len(l.acks); n != 0 {
			t.Errorf("%d old ones are kept", n)
		}
	})
}

func TestAWarningIsNotRepeatedAllTheTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		log, out := bufferedLog()
		w := newWarnings(log)
		for range 5 {
			w.rarely("delay dropped")
		}
		w.rarely("another")
		if n := out.count("delay dropped"); n != 1 || out.count("another") != 1 {
			t.Errorf("logged %d times at once:\n%s", n, out)
		}
		time.Sleep(warnEvery)
		w.rarely("delay dropped")
		w.rarely("delay dropped")
		if n := out.count("delay dropped"); n != 2 || !out.has("not_logged=4") {
			t.Errorf("logged %d times in all, want 2 and how many were left out:\n%s", n, out)
		}
		for range 3 {
			w.once("count", "header is no count")
			time.Sleep(2 * warnEvery)
		}
		if n := out.count("msg=count"); n != 1 {
			t.Errorf("what is said once was said %d times", n)
		}
	})
}

func TestFailuresThatComeTogetherArePacedAsOne(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newPace()
		within := func(what string, got, most time.Duration) {
			t.Helper()
			if got < most/2 || got > most {
				t.Errorf("%s: %v, want %v to %v", what, got, most/2, most)
			}
		}
		within("the first", p.next(), paceMin)
		for range 50 {
			within("one that fails with it", p.next(), 2*paceMin)
		}
		time.Sleep(2 * paceMin)
		within("the second round", p.next(), 2*paceMin)
		within("the same round", p.next(), 4*paceMin)
		for range 20 {
			time.Sleep(paceMax)
			p.next()
		}
		within("after many", p.next(), paceMax)
		p.reset()
		within("after a success", p.next(), paceMin)
	})
}

func TestCountsNotUnderstoodAreLoggedOnce(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	p := capped(b, settle.Classic, 3)
	for range 3 {
		b.publish(p.Queue, amqp.Publishing{Headers: amqp.Table{"x-ruststream-retry-count": "abc"}})
	}
	hook := &recorder{reply: always(hooks.Ack)}
	run := b.start(b.config(Queue{Policy: p, Hook: hook}))
	for _, c := range b.settled(run, hook, 3) {
		if c.Attempt != 1 {
			t.Errorf("a count that is none made attempt %d", c.Attempt)
		}
	}
	if n := b.log.count("retry count not understood"); n != 1 || !b.log.has("abc") {
		t.Errorf("logged %d times", n)
	}
}

func TestADelayThatIsDroppedIsReportedRarely(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	p := capped(b, settle.Quorum, 3)
	const n = 5
	for i := range n {
		b.publish(p.Queue, amqp.Publishing{MessageId: fmt.Sprint(i)})
	}
	hook := &recorder{reply: func(m hooks.Message) hooks.Outcome {
		if m.Attempt == 1 {
			return hooks.Outcome{Verdict: hooks.RetryAfter, Delay: time.Minute}
		}
		return hooks.Outcome{Verdict: hooks.Ack}
	}}
	run := b.start(b.config(Queue{Policy: p, Hook: hook}))
	b.settled(run, hook, 2*n)
	if got := strings.Count(b.log.String(), "delay dropped"); got != 1 {
		t.Errorf("reported %d times, want once", got)
	}
}
