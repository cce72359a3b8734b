package settle_test

import (
	"strings"
	"testing"

	"github.com/rsctl/rsctl/pkg/hooks"
	"github.com/rsctl/rsctl/pkg/settle"
)

func TestADeliveryLimitIsReadAsTheServerReadsIt(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name    string
		limit   settle.Limit
		major   int
		returns int64
		limited bool
	}{
		{"none on 3.x is none", settle.Limit{}, 3, 0, false},
		{"none on 4.x is 20", settle.Limit{}, 4, 20, true},
		{"-1 on 3.x drops at the first return", settle.Limit{Given: true, Returns: -1}, 3, 0, true},
		{"-1 on 4.x is none", settle.Limit{Given: true, Returns: -1}, 4, 0, false},
		{"0 is the first return everywhere", settle.Limit{Given: true}, 3, 0, true},
		{"a number is a number on 3.x", settle.Limit{Given: true, Returns: 5}, 3, 5, true},
		{"a number above the default counts", settle.Limit{Given: true, Returns: 100}, 4, 100, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if n, limited := tt.limit.On(tt.major); n != tt.returns || limited != tt.limited {
				t.Errorf("On(%d) = %d, %t; want %d, %t", tt.major, n, limited, tt.returns, tt.limited)
			}
		})
	}
}

// What the log and the tables say of a returned message is what becomes of it.
func TestTheWordsForAReturnKnowTheLimit(t *testing.T) {
	t.Parallel()
	given := func(n int64) settle.Limit { return settle.Limit{Given: true, Returns: n} }
	tests := []struct {
		name  string
		limit settle.Limit
		route bool
		facts settle.Facts
		want  string
	}{
		{"below the limit", given(3), false, settle.Facts{Attempt: 3}, "back in the queue; the server counts it"},
		{"at the limit without a route", given(3), false, settle.Facts{Attempt: 4}, "past its limit, the server drops it"},
		{"at the limit with a route", given(3), true, settle.Facts{Attempt: 4}, "past its limit, the server moves it to the queue's dead-letter route"},
		{"copies start the server's count anew", given(3), false, settle.Facts{Attempt: 6, Counted: 3}, "back in the queue; the server counts it"},
		{"a limit of nothing", given(0), false, settle.Facts{Attempt: 1}, "past its limit, the server drops it"},
		{"no limit", given(-1), false, settle.Facts{Attempt: 99}, "back in the queue; the server counts it and has no limit there"},
		{"the default, not yet", settle.Limit{}, false, settle.Facts{Attempt: 20}, "back in the queue; the server counts it"},
		{"the default", settle.Limit{}, false, settle.Facts{Attempt: 21}, "past 20 returns, RabbitMQ 4 drops it"},
		{"the default with a route", settle.Limit{}, true, settle.Facts{Attempt: 21}, "past 20 returns, RabbitMQ 4 moves it to the queue's dead-letter route"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p := settle.Policy{Queue: "orders", Type: settle.Quorum, Limit: tt.limit, OwnRoute: tt.route}
			steps := settle.Decide(tt.facts, hooks.Outcome{Verdict: hooks.Retry}, p)
			if got := settle.Consequence(tt.facts, steps, p); !strings.HasPrefix(got, tt.want) || strings.Contains(got, "drops") != strings.Contains(tt.want, "drops") {
				t.Errorf("Consequence() = %q, want %q", got, tt.want)
			}
		})
	}
}
