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

func TestCountsNotUnderstoodAreLoggedOnce(t *testing.T) {
	t.Parallel()
	inMemory(t, func(t *testing.T, b *bench) {
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
	})
}

func TestDelayThatIsDroppedIsReportedRarely(t *testing.T) {
	t.Parallel()
	inMemory(t, func(t *testing.T, b *bench) {
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
	})
}
