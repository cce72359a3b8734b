package runtime

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"pgregory.net/rapid"

	"github.com/rsctl/rsctl/pkg/hooks"
	"github.com/rsctl/rsctl/pkg/settle"
)

// modelTime bounds the search; a case takes about a second on a real broker.
const modelTime = 12 * time.Second

// A scenario is a queue, what its hook answers to each run of each message, and
// after how many runs of all messages the process is restarted.
type scenario struct {
	policy   settle.Policy
	scripts  [][]hooks.Verdict // by message and run; after the last one the answer is ack
	restarts []int64
}

const modelDelay = 20 * time.Millisecond

func (s *scenario) answer(message, run int) hooks.Outcome {
	v := hooks.Ack
	if script := s.scripts[message]; run < len(script) {
		v = script[run]
	}
	return hooks.Outcome{Verdict: v, Delay: modelDelay}
}

// An end is what has become of a message: the attempt numbers that its runs were
// told, and where it is.
type end struct {
	attempts []int
	place    string
}

// model is the promise, without a broker.
func (s *scenario) model(message int) end {
	var e end
	p := s.policy
	for run, n := 0, 1; ; run++ {
		e.attempts = append(e.attempts, n)
		switch v := s.answer(message, run).Verdict; {
		case v == hooks.Ack:
			e.place = "acked"
			return e
		case v == hooks.Drop && p.Type == settle.Quorum && p.DeadLetter != "",
			v != hooks.Drop && p.MaxAttempts > 0 && n >= p.MaxAttempts:
			e.place = "dead"
			return e
		case v == hooks.Drop:
			e.place = "dropped"
			return e
		case p.Type == settle.Classic && p.MaxAttempts == 0 && (v == hooks.Retry || p.Delay != nil && p.Delay.Mode == settle.ModeHold):
			// A requeue that nobody counts.
		default:
			n++
		}
	}
}

func TestRandomOutcomesAndRestartsEndAsTheModelSays(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	began := time.Now()
	var failed atomic.Bool
	cases := 0
	rapid.Check(t, func(t *rapid.T) {
		if !failed.Load() && cases >= 3 && time.Since(began) > modelTime {
			return
		}
		cases++
		s := b.draw(t)
		got := b.play(s)
		for i := range s.scripts {
			if want := s.model(i); !slices.Equal(got[i].attempts, want.attempts) || got[i].place != want.place {
				failed.Store(true)
				t.Fatalf("%+v\nmessage %d with answers %v, restarts %v:\ngot  %v\nwant %v", s.policy, i, s.scripts[i], s.restarts, got[i], want)
			}
		}
	})
}

// draw makes the queues of a random scenario. What a stopping process hands back
// costs an attempt of a quorum queue before 4.3, so there is no restart then.
func (b *bench) draw(t *rapid.T) *scenario {
	kind := rapid.SampledFrom([]settle.Type{settle.Classic, settle.Quorum}).Draw(t, "type")
	modes := []string{"hold", "dlx_ttl", ""}
	if kind == settle.Classic {
		modes = append(modes, "timer")
	}
	mode := rapid.SampledFrom(modes).Draw(t, "delay")
	s := &scenario{policy: b.exactly(tablePolicy(kind, rapid.IntRange(0, 4).Draw(t, "cap"), mode))}
	verdict := rapid.SampledFrom([]hooks.Verdict{hooks.Failed, hooks.Retry, hooks.Retry, hooks.RetryAfter, hooks.RetryAfter, hooks.Drop})
	s.scripts = rapid.SliceOfN(rapid.SliceOfN(verdict, 0, 5), 1, 6).Draw(t, "answers")
	for _, script := range s.scripts {
		for i, v := range script {
			if v == hooks.Failed { // the same as retry, and not to be told apart by the model
				script[i] = hooks.Retry
			}
		}
	}
	if kind == settle.Classic || b.since(4, 3) {
		s.restarts = rapid.SliceOfN(rapid.Int64Range(1, 8), 0, 2).Draw(t, "restarts")
	}
	return s
}

func (b *bench) since(major, minor int) bool {
	var x, y int
	version, _ := b.conn.Properties["version"].(string)
	if _, err := fmt.Sscanf(version, "%d.%d", &x, &y); err != nil {
		b.t.Fatalf("the server says it is version %q: %v", version, err)
	}
	return x > major || x == major && y >= minor
}

// play runs a scenario to its end on the broker.
func (b *bench) play(s *scenario) []end {
	b.t.Helper()
	var mu sync.Mutex
	got := make([]end, len(s.scripts))
	var runs atomic.Int64
	var stop atomic.Pointer[func()]
	hook := &recorder{reply: func(m hooks.Message) hooks.Outcome {
		var i int
		_, _ = fmt.Sscan(m.MessageID, &i)
		mu.Lock()
		defer mu.Unlock()
		o := s.answer(i, len(got[i].attempts))
		got[i].attempts = append(got[i].attempts, m.Attempt)
		if o.Verdict == hooks.Ack {
			got[i].place = "acked"
		}
		if f := stop.Load(); f != nil && slices.Contains(s.restarts, runs.Add(1)) {
			(*f)()
		}
		return o
	}}
	for i := range s.scripts {
		b.publish(s.policy.Queue, amqp.Publishing{MessageId: fmt.Sprint(i)})
	}
	for range s.restarts {
		b.runOnce(s, hook, &stop)
	}
	unfinished := func() bool {
		mu.Lock()
		defer mu.Unlock()
		return s.missing(got) > 0
	}
	// A drain does not wait for what waits on the broker.
	for began, once := time.Now(), true; once || unfinished() && time.Since(began) < patience; once = false {
		b.runOnce(s, hook, nil)
	}
	b.locate(s, got)
	return got
}

// missing is how many runs are still to come.
func (s *scenario) missing(got []end) int {
	n := 0
	for i, e := range got {
		n += max(0, len(s.model(i).attempts)-len(e.attempts))
	}
	return n
}

// runOnce runs until the queue is empty, or until a hook asks for a stop.
func (b *bench) runOnce(s *scenario, hook hooks.Hook, stop *atomic.Pointer[func()]) {
	b.t.Helper()
	cfg := b.config(Queue{Policy: s.policy, Hook: hook, Concurrency: 2, Prefetch: 4})
	cfg.Drain = true
	r := b.start(cfg)
	if stop != nil {
		f := func() { r.drain() }
		stop.Store(&f)
		defer stop.Store(nil)
	}
	if err := r.wait(); err != nil {
		b.t.Errorf("Run() = %v", err)
	}
}

// locate fills in the places of what was not acked.
func (b *bench) locate(s *scenario, got []end) {
	b.t.Helper()
	dead := map[string]bool{}
	want := 0
	for i := range got {
		if s.model(i).place == "dead" {
			want++
		}
	}
	for range want {
		dead[b.get(s.policy.DeadLetter).MessageId] = true
	}
	for i := range got {
		switch {
		case dead[fmt.Sprint(i)]:
			got[i].place = "dead"
		case got[i].place == "":
			got[i].place = "dropped"
		}
	}
}
