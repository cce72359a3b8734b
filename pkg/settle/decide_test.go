package settle_test

import (
	"math"
	"reflect"
	"testing"
	"time"

	"github.com/rsctl/rsctl/pkg/hooks"
	"github.com/rsctl/rsctl/pkg/settle"
)

const (
	ack    = hooks.Ack
	drop   = hooks.Drop
	retry  = hooks.Retry
	failed = hooks.Failed
)

var (
	rejected = settle.Reject{}
	requeued = settle.Reject{Requeue: true}
	storm    = settle.Pace{Age: 50 * time.Millisecond}
	atOnce   = settle.Target{Key: "orders", Queue: "orders"}
	dead     = settle.Target{Key: "orders.dead", Queue: "orders.dead"}
)

func after(d time.Duration) hooks.Outcome {
	return hooks.Outcome{Verdict: hooks.RetryAfter, Delay: d}
}

func answer(v hooks.Verdict) hooks.Outcome { return hooks.Outcome{Verdict: v} }

// policy returns a policy for the queue "orders", changed by the given edits.
func policy(t settle.Type, edits ...func(*settle.Policy)) settle.Policy {
	p := settle.Policy{Queue: "orders", Type: t}
	for _, edit := range edits {
		edit(&p)
	}
	return p
}

func capped(n int) func(*settle.Policy) {
	return func(p *settle.Policy) { p.MaxAttempts, p.DeadLetter = n, "orders.dead" }
}

func strategy(d settle.Delay) func(*settle.Policy) {
	return func(p *settle.Policy) { p.Delay = &d }
}

func waitingQueue() func(*settle.Policy) {
	return strategy(settle.Delay{
		Strategy: "dlx_ttl", Mode: settle.ModeCopy, Max: 315_360_000_000 * time.Millisecond,
		Route: func(d time.Duration) settle.Target {
			return settle.Target{Key: "orders.retry", Queue: "orders.retry", Expiration: d}
		},
	})
}

func delayedExchange() func(*settle.Policy) {
	return strategy(settle.Delay{
		Strategy: "plugin_dme", Mode: settle.ModeCopy, Max: 4_294_967_295 * time.Millisecond,
		Route: func(d time.Duration) settle.Target {
			return settle.Target{Exchange: "orders.delay", Key: "orders", XDelay: d, NotMandatory: true}
		},
	})
}

func retryCopy(count int) settle.Copy {
	return settle.Copy{To: atOnce, Purpose: settle.ForRetry, Count: count}
}

func deadCopy() settle.Copy { return settle.Copy{To: dead, Purpose: settle.ForDeadLetter} }

type decision struct {
	name   string
	policy settle.Policy
	facts  settle.Facts
	answer hooks.Outcome
	want   []settle.Step
}

func runDecisions(t *testing.T, tests []decision) {
	t.Helper()
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := settle.Decide(tt.facts, tt.answer, tt.policy); !reflect.DeepEqual(got, tt.want) {
				t.Errorf("Decide() steps:\n got %#v\nwant %#v", got, tt.want)
			}
		})
	}
}

func TestDecideClassic(t *testing.T) {
	t.Parallel()
	plain, three := policy(settle.Classic), policy(settle.Classic, capped(3))
	noDeadLetter := policy(settle.Classic, func(p *settle.Policy) { p.MaxAttempts = 3 })
	ackOriginal := policy(settle.Classic, capped(3), func(p *settle.Policy) { p.AckOriginal = true })
	ownExchange := policy(settle.Classic, capped(3), func(p *settle.Policy) { p.RetryExchange = "retries" })
	first, last := settle.Facts{Attempt: 1}, settle.Facts{Attempt: 3, Counted: 2}

	runDecisions(t, []decision{
		{"ack acknowledges", plain, first, answer(ack), []settle.Step{settle.Ack{}}},
		{"ack at the cap still acknowledges", three, last, answer(ack), []settle.Step{settle.Ack{}}},
		{"drop rejects for good", plain, first, answer(drop), []settle.Step{rejected}},
		{"drop at the cap makes no copy", three, last, answer(drop), []settle.Step{rejected}},
		{"retry without a cap requeues", plain, first, answer(retry), []settle.Step{requeued}},
		{"a handler that did not answer is a retry", plain, first, answer(failed), []settle.Step{requeued}},
		{
			"retry without a cap waits for the floor once redelivered", plain,
			settle.Facts{Attempt: 1, Redelivered: true},
			answer(retry), []settle.Step{settle.Pace{Age: 100 * time.Millisecond}, requeued},
		},
		{
			"retry below the cap copies to the queue with the attempt as count", three,
			settle.Facts{Attempt: 2, Counted: 1, Redelivered: true},
			answer(retry), []settle.Step{retryCopy(2), rejected},
		},
		{"retry at the cap copies to the dead-letter queue", three, last, answer(retry), []settle.Step{deadCopy(), rejected}},
		{
			"retry beyond the cap copies to the dead-letter queue", three,
			settle.Facts{Attempt: 9, Counted: 8}, answer(failed), []settle.Step{deadCopy(), rejected},
		},
		{
			"a cap of one copies the first failure to the dead-letter queue", policy(settle.Classic, capped(1)),
			first, answer(retry), []settle.Step{deadCopy(), rejected},
		},
		{
			"retry at the cap without a dead-letter queue only rejects", noDeadLetter, last,
			answer(retry), []settle.Step{settle.Warn{What: settle.WarnDiscarded}, rejected},
		},
		{
			"nine attempts are retried without a pause", policy(settle.Classic, capped(11)),
			settle.Facts{Attempt: 9, Counted: 8}, answer(retry), []settle.Step{retryCopy(9), rejected},
		},
		{
			"from the tenth attempt on a retry copy is paced", policy(settle.Classic, capped(11)),
			settle.Facts{Attempt: 10, Counted: 9}, answer(retry), []settle.Step{storm, retryCopy(10), rejected},
		},
		{
			"the last attempt is not paced however high the cap", policy(settle.Classic, capped(11)),
			settle.Facts{Attempt: 11, Counted: 10}, answer(retry), []settle.Step{deadCopy(), rejected},
		},
		{"retry_original ack acks after a retry copy", ackOriginal, first, answer(retry), []settle.Step{retryCopy(1), settle.Ack{}}},
		{"retry_original ack acks after a dead-letter copy", ackOriginal, last, answer(retry), []settle.Step{deadCopy(), settle.Ack{}}},
		{
			"a retry publisher's exchange takes retry copies", ownExchange, first, answer(retry),
			[]settle.Step{settle.Copy{To: settle.Target{Exchange: "retries", Key: "orders", Queue: "orders"}, Count: 1}, rejected},
		},
		{
			"a retry publisher's exchange takes dead-letter copies", ownExchange, last, answer(retry),
			[]settle.Step{settle.Copy{
				To:      settle.Target{Exchange: "retries", Key: "orders.dead", Queue: "orders.dead"},
				Purpose: settle.ForDeadLetter,
			}, rejected},
		},
	})
}

func TestDecideClassicDelays(t *testing.T) {
	t.Parallel()
	first, last := settle.Facts{Attempt: 1}, settle.Facts{Attempt: 3, Counted: 2}
	undeclared := policy(settle.Classic, capped(3))
	timer := policy(settle.Classic, capped(3), strategy(settle.Delay{Strategy: "timer", Mode: settle.ModeTimer}))
	hold := policy(settle.Classic, capped(3), strategy(settle.Delay{Strategy: "hold", Mode: settle.ModeHold}))
	holdForEver := policy(settle.Classic, strategy(settle.Delay{Strategy: "hold", Mode: settle.ModeHold}))
	ttl, dme := policy(settle.Classic, capped(3), waitingQueue()), policy(settle.Classic, capped(3), delayedExchange())
	ackOriginal := undeclared
	ackOriginal.AckOriginal = true
	later := settle.Later{After: time.Second, Copy: retryCopy(1)}

	runDecisions(t, []decision{
		{"retry_after without a delay holds the copy in the process", undeclared, first, after(time.Second), []settle.Step{later, rejected}},
		{"retry_after with timer holds the copy in the process", timer, first, after(time.Second), []settle.Step{later, rejected}},
		{"retry_original ack acks an original whose copy is held", ackOriginal, first, after(time.Second), []settle.Step{later, settle.Ack{}}},
		{
			"retry_after without cap or delay counts all the same", policy(settle.Classic), settle.Facts{Attempt: 4, Counted: 3},
			after(time.Second), []settle.Step{settle.Later{After: time.Second, Copy: retryCopy(4)}, rejected},
		},
		{
			"retry_after with dlx_ttl copies to the waiting queue and acks", ttl, settle.Facts{Attempt: 2, Counted: 1}, after(time.Second),
			[]settle.Step{settle.Copy{
				To:      settle.Target{Key: "orders.retry", Queue: "orders.retry", Expiration: time.Second},
				Purpose: settle.ForDelay, Count: 2,
			}, settle.Ack{}},
		},
		{
			"retry_after with plugin_dme copies to the delayed exchange and acks", dme, first, after(time.Second),
			[]settle.Step{settle.Copy{
				To:      settle.Target{Exchange: "orders.delay", Key: "orders", XDelay: time.Second, NotMandatory: true},
				Purpose: settle.ForDelay, Count: 1,
			}, settle.Ack{}},
		},
		{
			"a delay beyond the strategy's limit is cut to it with a warning", dme, first, after(math.MaxInt64),
			[]settle.Step{settle.Warn{What: settle.WarnDelayClamped}, settle.Copy{
				To:      settle.Target{Exchange: "orders.delay", Key: "orders", XDelay: 4_294_967_295 * time.Millisecond, NotMandatory: true},
				Purpose: settle.ForDelay, Count: 1,
			}, settle.Ack{}},
		},
		{
			"a delay of just the strategy's limit is kept without a warning", dme, first, after(4_294_967_295 * time.Millisecond),
			[]settle.Step{settle.Copy{
				To:      settle.Target{Exchange: "orders.delay", Key: "orders", XDelay: 4_294_967_295 * time.Millisecond, NotMandatory: true},
				Purpose: settle.ForDelay, Count: 1,
			}, settle.Ack{}},
		},
		{"retry_after with hold waits and then copies", hold, first, after(time.Second), []settle.Step{settle.Wait{For: time.Second}, retryCopy(1), rejected}},
		{"retry_after with hold and no cap waits and then requeues", holdForEver, first, after(time.Second), []settle.Step{settle.Wait{For: time.Second}, requeued}},
		{"retry_after at the cap never waits again", ttl, last, after(time.Second), []settle.Step{deadCopy(), rejected}},
		{"retry_after at the cap is not held either", hold, last, after(time.Second), []settle.Step{deadCopy(), rejected}},
		{"retry_after of zero is a plain retry", ttl, first, after(0), []settle.Step{retryCopy(1), rejected}},
		{"retry_after of less than zero is a plain retry", ttl, first, after(-time.Hour), []settle.Step{retryCopy(1), rejected}},
		{"a plain retry with a delay declared does not wait", ttl, first, answer(retry), []settle.Step{retryCopy(1), rejected}},
	})
}

func TestDecideQuorum(t *testing.T) {
	t.Parallel()
	plain, three := policy(settle.Quorum), policy(settle.Quorum, capped(3))
	ours := policy(settle.Quorum, capped(3), func(p *settle.Policy) { p.EndsSpent = true })
	ttl := policy(settle.Quorum, capped(3), waitingQueue())
	hold := policy(settle.Quorum, capped(3), strategy(settle.Delay{Strategy: "hold", Mode: settle.ModeHold}))
	native := policy(settle.Quorum, capped(3), strategy(settle.Delay{Strategy: "native", Mode: settle.ModeNative}))
	timer := policy(settle.Quorum, capped(3), strategy(settle.Delay{Strategy: "timer", Mode: settle.ModeTimer}))
	first, last := settle.Facts{Attempt: 1}, settle.Facts{Attempt: 3, Redelivered: true}
	counted := settle.Facts{Attempt: 3, Counted: 2}
	dropped := settle.Warn{What: settle.WarnDelayDropped}
	waiting := func(n int) settle.Copy {
		to := settle.Target{Key: "orders.retry", Queue: "orders.retry", Expiration: time.Second}
		return settle.Copy{To: to, Purpose: settle.ForDelay, Count: n}
	}

	runDecisions(t, []decision{
		{"ack acknowledges", plain, first, answer(ack), []settle.Step{settle.Ack{}}},
		{"drop rejects for good", three, first, answer(drop), []settle.Step{rejected}},
		{"retry without a cap requeues", plain, first, answer(retry), []settle.Step{requeued}},
		{
			"retry without a cap waits for the floor once redelivered", plain, settle.Facts{Attempt: 2, Redelivered: true},
			answer(retry), []settle.Step{settle.Pace{Age: 100 * time.Millisecond}, requeued},
		},
		{"retry below the cap requeues and the server counts", three, first, answer(retry), []settle.Step{requeued}},
		{"retry at the cap requeues past the server's limit", three, last, answer(retry), []settle.Step{requeued}},
		{"retry at the cap ends by a copy when copies have counted", three, counted, answer(retry), []settle.Step{deadCopy(), settle.Ack{}}},
		{"retry below the cap requeues although copies have counted", three, settle.Facts{Attempt: 2, Counted: 1}, answer(retry), []settle.Step{requeued}},
		{"retry_after without a delay requeues at once and warns", three, first, after(time.Second), []settle.Step{dropped, requeued}},
		{"retry_after with a timer publishes nothing either", timer, first, after(time.Second), []settle.Step{dropped, requeued}},
		{"retry_after with dlx_ttl copies to the waiting queue and acks", ttl, first, after(time.Second), []settle.Step{waiting(1), settle.Ack{}}},
		{
			"a delayed copy adds the server's count to its own", ttl, settle.Facts{Attempt: 2, Redelivered: true},
			after(time.Second), []settle.Step{waiting(2), settle.Ack{}},
		},
		{"retry_after with hold waits and then requeues", hold, first, after(time.Second), []settle.Step{settle.Wait{For: time.Second}, requeued}},
		{"retry_after with native leaves the wait to the server", native, first, after(time.Second), []settle.Step{requeued}},
		{
			"from the tenth attempt on a requeue is paced", policy(settle.Quorum, capped(11)),
			settle.Facts{Attempt: 10, Redelivered: true}, answer(retry), []settle.Step{storm, requeued},
		},
		{
			"a dropped delay is paced as a plain retry", policy(settle.Quorum, capped(11)),
			settle.Facts{Attempt: 10, Redelivered: true}, after(time.Second), []settle.Step{dropped, storm, requeued},
		},
		{
			"a hold longer than the floors needs none of them", policy(settle.Quorum, capped(11), strategy(settle.Delay{Strategy: "hold", Mode: settle.ModeHold})),
			settle.Facts{Attempt: 10, Redelivered: true}, after(time.Second), []settle.Step{settle.Wait{For: time.Second}, requeued},
		},
		{
			"a hold shorter than the floor is paced too", policy(settle.Quorum, capped(11), strategy(settle.Delay{Strategy: "hold", Mode: settle.ModeHold})),
			settle.Facts{Attempt: 10, Redelivered: true}, after(time.Millisecond), []settle.Step{settle.Wait{For: time.Millisecond}, storm, requeued},
		},
		{"retry_after at the cap never waits again", ttl, last, after(time.Second), []settle.Step{requeued}},
		{"retry_after at the cap ends by a copy when copies have counted", ttl, counted, after(time.Second), []settle.Step{deadCopy(), settle.Ack{}}},
		{"retry at the cap ends by a copy where the spec says so", ours, last, answer(retry), []settle.Step{deadCopy(), settle.Ack{}}},
		{"retry below the cap is a requeue there too", ours, first, answer(retry), []settle.Step{requeued}},
		{"drop is left to the server there too", ours, last, answer(drop), []settle.Step{rejected}},
	})
}

func TestDecideBackoff(t *testing.T) {
	t.Parallel()
	p := policy(settle.Classic, capped(5), func(p *settle.Policy) {
		p.Backoff = &settle.Backoff{Initial: time.Second, Factor: 2, Max: 5 * time.Second, Jitter: 0.5}
	})
	held := func(d time.Duration, n int) []settle.Step {
		return []settle.Step{settle.Later{After: d, Copy: retryCopy(n)}, rejected}
	}
	runDecisions(t, []decision{
		{"a plain retry waits for the backoff", p, settle.Facts{Attempt: 1}, answer(retry), held(time.Second, 1)},
		{"a failed handler waits for the backoff", p, settle.Facts{Attempt: 2}, answer(failed), held(2*time.Second, 2)},
		{"the backoff stops growing at its max", p, settle.Facts{Attempt: 4}, answer(retry), held(5*time.Second, 4)},
		{"jitter extends the backoff", p, settle.Facts{Attempt: 1, Jitter: 0.5}, answer(retry), held(1250*time.Millisecond, 1)},
		{"a retry_after keeps the delay it asked for", p, settle.Facts{Attempt: 1}, after(time.Minute), held(time.Minute, 1)},
		{"a retry_after of zero is a plain retry and waits for the backoff", p, settle.Facts{Attempt: 1}, after(0), held(time.Second, 1)},
		{"at the cap the backoff is over", p, settle.Facts{Attempt: 5, Counted: 4}, answer(retry), []settle.Step{deadCopy(), rejected}},
	})
}
