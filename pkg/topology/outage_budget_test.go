package topology_test

import (
	"math"
	"testing"
	"time"

	"github.com/rsctl/rsctl/pkg/spec"
	"github.com/rsctl/rsctl/pkg/topology"
)

func TestOutageBudget(t *testing.T) {
	t.Parallel()
	exponential := &spec.Backoff{Initial: time.Second, Factor: 2, Max: 10 * time.Second, Jitter: 0.5}
	tests := []struct {
		name  string
		queue spec.Queue
		want  time.Duration
		known bool
	}{
		{"without a cap no outage spends a message", spec.Queue{Type: spec.Classic, Backoff: exponential}, 0, false},
		{"plain retries wait for nothing", spec.Queue{Type: spec.Classic, MaxAttempts: 5}, 0, true},
		{"one attempt has no delay", spec.Queue{Type: spec.Classic, MaxAttempts: 1, Backoff: exponential}, 0, true},
		{"a delay between every two attempts, jitter not counted on", spec.Queue{Type: spec.Classic, MaxAttempts: 6, Backoff: exponential}, (1 + 2 + 4 + 8 + 10) * time.Second, true},
		{"a quorum queue without a strategy drops the delay", spec.Queue{Type: spec.Quorum, MaxAttempts: 6, Backoff: exponential}, 0, true},
		{"tiers wait the whole tier", spec.Queue{Type: spec.Quorum, MaxAttempts: 4, Backoff: exponential, Delay: &spec.Delay{Strategy: "dlx_ttl", Tiers: tiers}}, 15 * time.Second, true},
		{"tiers clamp at the largest", spec.Queue{Type: spec.Quorum, MaxAttempts: 2, Backoff: &spec.Backoff{Initial: time.Hour}, Delay: &spec.Delay{Strategy: "dlx_ttl", Tiers: tiers}}, 10 * time.Minute, true},
		{"levels round up to whole seconds", spec.Queue{Type: spec.Quorum, MaxAttempts: 3, Backoff: &spec.Backoff{Initial: 1500 * time.Millisecond}, Delay: &spec.Delay{Strategy: "levels"}}, 4 * time.Second, true},
		{"hold keeps the original for the delay, on quorum too", spec.Queue{Type: spec.Quorum, MaxAttempts: 4, Backoff: exponential, Delay: &spec.Delay{Strategy: "hold"}}, 7 * time.Second, true},
		{"the timer holds the copy for the delay", spec.Queue{Type: spec.Classic, MaxAttempts: 4, Backoff: exponential, Delay: &spec.Delay{Strategy: "timer"}}, 7 * time.Second, true},
		{"a waiting queue keeps it for the delay", spec.Queue{Type: spec.Quorum, MaxAttempts: 4, Backoff: exponential, Delay: &spec.Delay{Strategy: "dlx_ttl"}}, 7 * time.Second, true},
		{"the plugin keeps it for the delay, at most 49 days", spec.Queue{Type: spec.Classic, MaxAttempts: 3, Backoff: &spec.Backoff{Initial: time.Second, Factor: 1e9}, Delay: &spec.Delay{Strategy: "plugin_dme"}}, time.Second + math.MaxUint32*time.Millisecond, true},
		{"native does not look at the backoff", spec.Queue{Type: spec.Quorum, MaxAttempts: 3, Backoff: &spec.Backoff{Initial: time.Hour}, Delay: &spec.Delay{Strategy: "native", Min: time.Second, Max: time.Minute}}, 3 * time.Second, true},
		{"native is the server's linear back-off", spec.Queue{Type: spec.Quorum, MaxAttempts: 5, Delay: &spec.Delay{Strategy: "native", Min: 500 * time.Millisecond, Max: 1200 * time.Millisecond}}, (500 + 1000 + 1200 + 1200) * time.Millisecond, true},
		{"a limit in the arguments is an end", spec.Queue{Type: spec.Quorum, Arguments: map[string]any{"x-delivery-limit": int64(3)}, Backoff: exponential, Delay: &spec.Delay{Strategy: "hold"}}, 7 * time.Second, true},
		{"unless copies start the server's count anew", spec.Queue{Type: spec.Quorum, Arguments: map[string]any{"x-delivery-limit": int64(3)}, Backoff: exponential, Delay: &spec.Delay{Strategy: "levels"}}, 0, false},
		{"a limit of -1 is none", spec.Queue{Type: spec.Quorum, Arguments: map[string]any{"x-delivery-limit": int64(-1)}}, 0, false},
		{"a huge cap with a constant delay", spec.Queue{Type: spec.Classic, MaxAttempts: 1_000_001, Backoff: &spec.Backoff{Initial: time.Second, Factor: 1}}, 1_000_000 * time.Second, true},
		{"the sum ends at the largest duration", spec.Queue{Type: spec.Classic, MaxAttempts: math.MaxInt32, Backoff: &spec.Backoff{Initial: time.Second, Factor: 2}}, math.MaxInt64, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			tt.queue.Name = "orders"
			if got, known := topology.OutageBudget(&tt.queue); got != tt.want || known != tt.known {
				t.Errorf("OutageBudget() = %v, %t; want %v, %t", got, known, tt.want, tt.known)
			}
		})
	}
}
