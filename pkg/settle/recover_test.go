package settle_test

import (
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"github.com/rsctl/rsctl/pkg/settle"
)

func TestRecover(t *testing.T) {
	t.Parallel()
	classic, quorum := policy(settle.Classic, capped(3)), policy(settle.Quorum, capped(3))
	acked := policy(settle.Classic, capped(3), func(p *settle.Policy) { p.AckOriginal = true })
	routed := policy(settle.Classic, func(p *settle.Policy) { p.OwnRoute = true })
	bare := deadCopy()
	bare.Bare = true
	again := settle.Copy{To: atOnce, Purpose: settle.ForRetry, Count: 2}
	first, last := settle.Facts{Attempt: 1}, settle.Facts{Attempt: 3}
	for _, tt := range []struct {
		name    string
		failure settle.Failure
		policy  settle.Policy
		facts   settle.Facts
		want    []settle.Step
	}{
		{"a handler that the shutdown has ended runs again", settle.Stopped, quorum, first, []settle.Step{requeued}},
		{"and so does one whose reply is not confirmed", settle.ReplyUnconfirmed, classic, first, []settle.Step{requeued}},
		{"an overdue copy of a classic queue costs no attempt", settle.CopyOverdue, classic, last, []settle.Step{requeued}},
		{"an overdue copy below the cap of a quorum queue is the next attempt", settle.CopyOverdue, quorum, first, []settle.Step{requeued}},
		{"a spent message of a quorum queue keeps its last attempt", settle.CopyOverdue, quorum, last, []settle.Step{again, settle.Ack{}}},
		{"so it does without a dead-letter queue", settle.DeadLetterMissing, quorum, last, []settle.Step{again, settle.Ack{}}},
		{"a dropped one costs no attempt either", settle.DeadLetterMissing, quorum, settle.Facts{Attempt: 1}, []settle.Step{settle.Copy{To: atOnce, Purpose: settle.ForRetry}, settle.Ack{}}},
		{"what cannot be copied is dead-lettered bare", settle.CopyImpossible, classic, first, []settle.Step{bare, rejected}},
		{"and acked where originals are", settle.CopyImpossible, acked, first, []settle.Step{bare, settle.Ack{}}},
		{"on a quorum queue too", settle.CopyImpossible, quorum, first, []settle.Step{bare, settle.Ack{}}},
		{"without a dead-letter queue the route takes it", settle.CopyImpossible, routed, first, []settle.Step{rejected}},
		{"without any route it stays", settle.CopyImpossible, policy(settle.Classic), first, []settle.Step{requeued}},
		{"what cannot be copied bare either stays", settle.BareImpossible, classic, first, []settle.Step{requeued}},
		{"on a quorum queue the server takes it", settle.BareImpossible, quorum, first, []settle.Step{rejected}},
		{"a history that blocks death is left behind", settle.DeathBlocked, quorum, last, []settle.Step{deadCopy(), settle.Ack{}}},
		{"what cannot be put back is handed back", settle.KeepFailed, quorum, last, []settle.Step{settle.HandBack{}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := settle.Recover(tt.failure, tt.facts, tt.policy); !reflect.DeepEqual(got, tt.want) {
				t.Errorf("Recover() steps:\n got %#v\nwant %#v", got, tt.want)
			}
		})
	}
}

func TestEveryFailureIsSettledOnceAfterItsCopy(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		p := drawPolicy(t)
		f := drawFacts(t, p)
		e := rapid.SampledFrom(settle.Failures()).Draw(t, "failure")
		steps := settle.Recover(e, f, p)
		for i, s := range steps {
			if last := i == len(steps)-1; settle.Settles(s) != last {
				t.Fatalf("step %d of %#v", i, steps)
			}
		}
		if len(steps) == 0 || len(copies(steps)) > 1 {
			t.Fatalf("steps %#v: want a settling one and at most one copy", steps)
		}
		if steps[len(steps)-1] == (settle.Ack{}) && len(copies(steps)) == 0 {
			t.Fatalf("acknowledged without a copy: %#v", steps)
		}
	})
}
