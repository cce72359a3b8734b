package settle

import (
	"math"
	"reflect"
	"testing"
)

func TestDecideOversized(t *testing.T) {
	t.Parallel()
	dead := func(exchange string) Copy {
		return Copy{To: Target{Exchange: exchange, Key: "q.dead", Queue: "q.dead"}, Purpose: ForDeadLetter, Reason: ReasonMaxBody}
	}
	for _, tt := range []struct {
		name string
		p    Policy
		want []Step
		then string
	}{
		{
			"classic, without a dead-letter queue", Policy{Type: Classic},
			[]Step{Reject{}}, "goes to the dead-letter route of the queue if it has one, else it is gone",
		},
		{
			"classic, with one", Policy{Type: Classic, MaxAttempts: 3, DeadLetter: "q.dead", RetryExchange: "retries"},
			[]Step{dead("retries"), Reject{}}, "ends in q.dead",
		},
		{
			"classic, whose originals are acked", Policy{Type: Classic, MaxAttempts: 3, DeadLetter: "q.dead", AckOriginal: true},
			[]Step{dead(""), Ack{}}, "ends in q.dead",
		},
		{
			"quorum, without a dead-letter queue", Policy{Type: Quorum},
			[]Step{Reject{}}, "goes to the dead-letter route of the queue if it has one, else it is gone",
		},
		{
			"quorum, with one", Policy{Type: Quorum, MaxAttempts: 3, DeadLetter: "q.dead"},
			[]Step{dead(""), Ack{}}, "ends in q.dead",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got := DecideOversized(tt.p)
			if then := Consequence(Facts{Attempt: 1}, got, tt.p); !reflect.DeepEqual(got, tt.want) || then != tt.then {
				t.Errorf("got  %#v: %s\nwant %#v: %s", got, then, tt.want, tt.then)
			}
		})
	}
}

func TestOversized(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		limit int64
		size  int
		want  bool
	}{{0, math.MaxInt, false}, {10, 10, false}, {10, 11, true}, {1, 0, false}, {math.MaxInt64, math.MaxInt, false}} {
		if got := (Policy{MaxBody: tt.limit}).Oversized(tt.size); got != tt.want {
			t.Errorf("%d bytes, where %d are taken: %v, want %v", tt.size, tt.limit, got, tt.want)
		}
	}
}
