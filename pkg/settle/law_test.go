package settle_test

import (
	"math"
	"reflect"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/rsctl/rsctl/pkg/hooks"
	"github.com/rsctl/rsctl/pkg/settle"
)

// drawPolicy draws what a valid spec can compile to.
func drawPolicy(t *rapid.T) settle.Policy {
	p := settle.Policy{
		Queue:       "orders",
		Type:        rapid.SampledFrom([]settle.Type{settle.Classic, settle.Quorum}).Draw(t, "type"),
		MaxAttempts: rapid.IntRange(0, 16).Draw(t, "cap"),
		AckOriginal: rapid.Bool().Draw(t, "ack original"),
	}
	// A quorum queue has both halves of the pair or none, and no publisher.
	if p.MaxAttempts > 0 && (p.Type == settle.Quorum || rapid.Bool().Draw(t, "dead letter")) {
		p.DeadLetter = "orders.dead"
	}
	if p.Type == settle.Classic && rapid.Bool().Draw(t, "publisher") {
		p.RetryExchange = "retries"
	}
	p.EndsSpent = p.Type == settle.Quorum && p.MaxAttempts > 0 && rapid.Bool().Draw(t, "ends spent")
	p.Delay = drawDelay(t, p.Type)
	if rapid.Bool().Draw(t, "backoff") {
		p.Backoff = &settle.Backoff{
			Initial: time.Duration(rapid.Int64Min(1).Draw(t, "initial")),
			Factor:  rapid.Float64Range(0, 1e9).Draw(t, "factor"),
			Max:     time.Duration(rapid.Int64Min(0).Draw(t, "max")),
			Jitter:  rapid.Float64Range(0, 1).Draw(t, "jitter"),
		}
	}
	return p
}

func drawDelay(t *rapid.T, typ settle.Type) *settle.Delay {
	p := policy(typ)
	choices := []func(*settle.Policy){
		func(*settle.Policy) {}, waitingQueue(), delayedExchange(),
		strategy(settle.Delay{Mode: settle.ModeHold}), strategy(settle.Delay{Mode: settle.ModeHold, Max: time.Minute}),
	}
	if typ == settle.Classic {
		choices = append(choices, strategy(settle.Delay{Mode: settle.ModeTimer}))
	} else {
		choices = append(choices, strategy(settle.Delay{Mode: settle.ModeNative}))
	}
	choices[rapid.IntRange(0, len(choices)-1).Draw(t, "delay")](&p)
	return p.Delay
}

func drawFacts(t *rapid.T, p settle.Policy) settle.Facts {
	counted := rapid.IntRange(0, 12).Draw(t, "counted")
	server := rapid.Int64Range(0, 12).Draw(t, "server count")
	return settle.Facts{
		Attempt:     settle.Attempt(p.Type, counted, server),
		Counted:     counted,
		Redelivered: rapid.Bool().Draw(t, "redelivered"),
		Jitter:      rapid.Float64Range(0, 0.999).Draw(t, "draw"),
	}
}

func drawAnswer(t *rapid.T) hooks.Outcome {
	return hooks.Outcome{
		Verdict: hooks.Verdict(rapid.IntRange(int(hooks.Failed), int(hooks.RetryAfter)).Draw(t, "verdict")),
		Delay:   time.Duration(rapid.Int64().Draw(t, "delay")),
	}
}

// eachDecision checks a law over every kind of policy, delivery and answer.
func eachDecision(t *testing.T, law func(*rapid.T, decision)) {
	t.Helper()
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		p := drawPolicy(t)
		d := decision{policy: p, facts: drawFacts(t, p), answer: drawAnswer(t)}
		d.want = settle.Decide(d.facts, d.answer, p) // the steps that the law judges
		law(t, d)
	})
}

// copies returns every copy among steps, those for later included.
func copies(steps []settle.Step) []settle.Copy {
	var found []settle.Copy
	for _, s := range steps {
		switch s := s.(type) {
		case settle.Copy:
			found = append(found, s)
		case settle.Later:
			found = append(found, s.Copy)
		}
	}
	return found
}

func TestExactlyOneStepSettlesAndItIsTheLast(t *testing.T) {
	eachDecision(t, func(t *rapid.T, d decision) {
		for i, s := range d.want {
			if last := i == len(d.want)-1; settle.Settles(s) != last {
				t.Fatalf("step %d of %#v: Settles = %t", i, d.want, !last)
			}
		}
		if len(d.want) == 0 || len(copies(d.want)) > 1 {
			t.Fatalf("steps %#v: want a settling one and at most one copy", d.want)
		}
	})
}

func TestOnlyRetriesAreCopiedOrRequeued(t *testing.T) {
	eachDecision(t, func(t *rapid.T, d decision) {
		switch d.answer.Verdict {
		case hooks.Ack, hooks.Drop:
			if len(d.want) != 1 || d.want[0] == requeued {
				t.Fatalf("%v gave %#v", d.answer.Verdict, d.want)
			}
		default:
			if len(d.want) == 1 && d.want[0] == (settle.Ack{}) {
				t.Fatalf("%v acknowledged without a copy", d.answer.Verdict)
			}
		}
	})
}

func TestCopiesCountTheAttemptThatEnded(t *testing.T) {
	eachDecision(t, func(t *rapid.T, d decision) {
		for _, c := range copies(d.want) {
			if c.Purpose == settle.ForDeadLetter {
				continue
			}
			if c.Count != d.facts.Attempt || c.Count < d.facts.Counted {
				t.Fatalf("facts %+v gave a copy with count %d", d.facts, c.Count)
			}
		}
	})
}

func TestTheCapIsNeverPassed(t *testing.T) {
	eachDecision(t, func(t *rapid.T, d decision) {
		p := d.policy
		if p.MaxAttempts == 0 || d.facts.Attempt < p.MaxAttempts {
			return
		}
		for _, s := range d.want {
			switch s := s.(type) {
			case settle.Later, settle.Wait, settle.Pace:
				t.Fatalf("attempt %d of %d waits: %#v", d.facts.Attempt, p.MaxAttempts, d.want)
			case settle.Copy:
				if s.Purpose != settle.ForDeadLetter {
					t.Fatalf("attempt %d of %d is copied: %#v", d.facts.Attempt, p.MaxAttempts, d.want)
				}
			case settle.Reject:
				// Only the server's own limit, not restarted by a copy, may be
				// left to end it.
				if s.Requeue && (p.Type == settle.Classic || d.facts.Counted > 0) {
					t.Fatalf("attempt %d of %d is requeued: %+v", d.facts.Attempt, p.MaxAttempts, d.facts)
				}
			}
		}
	})
}

// A retry that nothing else delays may not be repeated as fast as a hook fails.
func TestNoMessageIsRetriedAtOnceForEver(t *testing.T) {
	eachDecision(t, func(t *rapid.T, d decision) {
		early := d.facts.Attempt < settle.StormAttempt
		if d.policy.MaxAttempts == 0 {
			early = !d.facts.Redelivered
		}
		var held time.Duration
		for _, s := range d.want {
			switch s := s.(type) {
			case settle.Pace:
				held = max(held, s.Age)
			case settle.Wait:
				held = max(held, s.For)
			}
		}
		if early && slices.ContainsFunc(d.want, isPace) {
			t.Fatalf("facts %+v are paced: %#v", d.facts, d.want)
		}
		native := d.policy.Delay != nil && d.policy.Delay.Mode == settle.ModeNative
		if !early && !native && retriesAtOnce(d) && held < settle.StormFloor {
			t.Fatalf("facts %+v with cap %d are retried at once: %#v", d.facts, d.policy.MaxAttempts, d.want)
		}
	})
}

func isPace(s settle.Step) bool { _, ok := s.(settle.Pace); return ok }

// retriesAtOnce reports whether d brings the message back by nothing that waits
// elsewhere. At the cap nothing comes back.
func retriesAtOnce(d decision) bool {
	if d.policy.MaxAttempts > 0 && d.facts.Attempt >= d.policy.MaxAttempts {
		return false
	}
	return slices.ContainsFunc(d.want, func(s settle.Step) bool {
		c, ok := s.(settle.Copy)
		return s == requeued || ok && c.Purpose == settle.ForRetry
	})
}

func TestTheProcessHoldsCopiesOfClassicQueuesOnly(t *testing.T) {
	eachDecision(t, func(t *rapid.T, d decision) {
		timer := d.policy.Delay == nil || d.policy.Delay.Mode == settle.ModeTimer
		for _, s := range d.want {
			later, ok := s.(settle.Later)
			if !ok {
				continue
			}
			if d.policy.Type != settle.Classic || !timer || later.After <= 0 || later.Copy.Purpose != settle.ForRetry {
				t.Fatalf("policy %+v gave %#v", d.policy, later)
			}
		}
	})
}

func TestQuorumQueuesPublishNothingButDelayedCopiesAndDeadLetters(t *testing.T) {
	eachDecision(t, func(t *rapid.T, d decision) {
		ours := d.policy.EndsSpent || d.facts.Counted > 0
		for _, c := range copies(d.want) {
			dead := c.Purpose == settle.ForDeadLetter && ours && d.facts.Attempt >= d.policy.MaxAttempts
			if d.policy.Type == settle.Quorum && c.Purpose != settle.ForDelay && !dead {
				t.Fatalf("a quorum queue published %#v", c)
			}
		}
	})
}

func TestADelayOfNothingIsAPlainRetry(t *testing.T) {
	eachDecision(t, func(t *rapid.T, d decision) {
		none := after(min(d.answer.Delay, 0))
		got := settle.Decide(d.facts, none, d.policy)
		if want := settle.Decide(d.facts, answer(retry), d.policy); !reflect.DeepEqual(got, want) {
			t.Fatalf("retry_after %v gave %#v, retry %#v", none.Delay, got, want)
		}
	})
}

func TestNoDelayIsShorterThanAskedFor(t *testing.T) {
	eachDecision(t, func(t *rapid.T, d decision) {
		asked, limit := d.answer.Delay, time.Duration(math.MaxInt64)
		if d.answer.Verdict != hooks.RetryAfter {
			asked = 0
		}
		if d.policy.Delay != nil && d.policy.Delay.Max > 0 {
			limit = d.policy.Delay.Max
		}
		for _, s := range d.want {
			if got, waits := waitOf(s); waits && (got < min(asked, limit) || got <= 0 || got > limit) {
				t.Fatalf("asked for %v of at most %v, got %v", asked, limit, got)
			}
		}
	})
}

func waitOf(s settle.Step) (time.Duration, bool) {
	switch s := s.(type) {
	case settle.Later:
		return s.After, true
	case settle.Wait:
		return s.For, true
	case settle.Copy:
		return s.To.Expiration + s.To.XDelay, s.Purpose == settle.ForDelay
	}
	return 0, false
}

func TestABackoffOnlyEverExtends(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		b := settle.Backoff{
			Initial: time.Duration(rapid.Int64Min(0).Draw(t, "initial")),
			Factor:  rapid.Float64Range(0, math.MaxFloat64).Draw(t, "factor"),
			Max:     time.Duration(rapid.Int64Min(0).Draw(t, "max")),
			Jitter:  rapid.Float64Range(0, 10).Draw(t, "jitter"),
		}
		n, draw := rapid.Int().Draw(t, "n"), rapid.Float64Range(0, 0.999).Draw(t, "draw")
		first, plain, extended := b.After(1, 0), b.After(n, 0), b.After(n, draw)
		if first < 0 || plain < first || extended < plain {
			t.Fatalf("%+v: first %v, attempt %d %v, with jitter %v", b, first, n, plain, extended)
		}
	})
}
