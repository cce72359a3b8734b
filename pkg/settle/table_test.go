package settle_test

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/rsctl/rsctl/pkg/settle"
)

func TestDescribe(t *testing.T) {
	t.Parallel()
	tests := []struct {
		step settle.Step
		want string
	}{
		{settle.Ack{}, "basic.ack"},
		{rejected, "basic.reject(requeue=false)"},
		{requeued, "basic.reject(requeue=true)"},
		{deadCopy(), "copy to orders.dead through the default exchange, confirmed"},
		{retryCopy(2), "copy to orders through the default exchange, count 2, confirmed"},
		{
			settle.Copy{To: settle.Target{Exchange: "retries", Key: "orders", Queue: "orders"}, Count: 1},
			"copy to orders through exchange retries, count 1, confirmed",
		},
		{
			settle.Copy{To: settle.Target{Key: "w", Queue: "w", Expiration: 1500*time.Microsecond + 1}, Purpose: settle.ForDelay, Count: 1},
			"copy to w through the default exchange, expiration 2 ms, count 1, confirmed",
		},
		{
			settle.Copy{To: settle.Target{Exchange: "orders.delay", Key: "orders", XDelay: time.Minute}, Purpose: settle.ForDelay, Count: 1},
			"copy to exchange orders.delay with key orders, x-delay 60000 ms, count 1, confirmed",
		},
		{
			settle.Later{After: 10 * time.Minute, Copy: retryCopy(1)},
			"hold in the process, and after 10m copy to orders through the default exchange, count 1, confirmed",
		},
		{settle.Wait{For: 48 * time.Hour}, "keep unsettled for 2d"},
		{settle.Wait{For: 90*time.Minute + 500*time.Millisecond}, "keep unsettled for 1h30m0.5s"},
		{settle.Wait{For: time.Hour}, "keep unsettled for 1h"},
		{settle.Pace{Age: settle.RequeueFloor}, "keep unsettled until 100ms after its arrival"},
		{settle.Warn{What: settle.WarnDelayClamped}, "warning: delay clamped to what the strategy can hold"},
	}
	for _, tt := range tests {
		t.Run(tt.want, func(t *testing.T) {
			t.Parallel()
			if got := settle.Describe(tt.step); got != tt.want {
				t.Errorf("Describe(%#v) = %q, want %q", tt.step, got, tt.want)
			}
		})
	}
}

// names lists the rows of p as "outcome: when".
func names(p settle.Policy) []string {
	var list []string
	for _, r := range settle.Table(p) {
		list = append(list, r.Outcome+": "+r.When)
	}
	return list
}

func TestTableHasARowForEveryEndingThatDiffers(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		policy settle.Policy
		want   []string
	}{
		{
			"without a cap, a redelivered message is paced", policy(settle.Classic),
			[]string{"ack: always", "drop: always", "retry: first delivery", "retry: redelivered", "retry_after 30s: always"},
		},
		{
			"with a cap, the last attempt ends in another way", policy(settle.Classic, capped(3)),
			[]string{"ack: always", "drop: always", "retry: before attempt 3", "retry: attempt 3", "retry_after 30s: before attempt 3", "retry_after 30s: attempt 3"},
		},
		{
			"with a cap of one, every attempt is the last", policy(settle.Classic, capped(1), waitingQueue()),
			[]string{"ack: always", "drop: always", "retry: always", "retry_after 30s: always"},
		},
		{
			"the server's limit takes the last attempt of a quorum queue elsewhere", policy(settle.Quorum, capped(3)),
			[]string{"ack: always", "drop: always", "retry: before attempt 3", "retry: attempt 3", "retry_after 30s: before attempt 3", "retry_after 30s: attempt 3"},
		},
		{
			"delayed copies of a quorum queue restart the server's count", policy(settle.Quorum, capped(3), waitingQueue()),
			[]string{
				"ack: always", "drop: always",
				"retry: before attempt 3", "retry: attempt 3", "retry: attempt 3, some of them delayed copies",
				"retry_after 30s: before attempt 3", "retry_after 30s: attempt 3", "retry_after 30s: attempt 3, some of them delayed copies",
				"retry_after: more than 3650d",
			},
		},
		{
			"a high cap paces the retries from the tenth attempt on, and nothing else", policy(settle.Classic, capped(100), waitingQueue()),
			[]string{
				"ack: always", "drop: always",
				"retry: before attempt 10", "retry: attempt 10 or later, before attempt 100", "retry: attempt 100",
				"retry_after 30s: before attempt 100", "retry_after 30s: attempt 100", "retry_after: more than 3650d",
			},
		},
		{
			"the example delay is one that the strategy can hold", policy(settle.Classic, strategy(settle.Delay{Mode: settle.ModeHold, Max: time.Second})),
			[]string{
				"ack: always", "drop: always", "retry: first delivery", "retry: redelivered",
				"retry_after 1s: always", "retry_after: more than 1s",
			},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := names(tt.policy); !reflect.DeepEqual(got, tt.want) {
				t.Errorf("Table() rows:\n got %q\nwant %q", got, tt.want)
			}
		})
	}
}

func TestEveryRowIsADecisionInWords(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		p := drawPolicy(t)
		for _, r := range settle.Table(p) {
			if want := settle.Decide(r.Facts, r.Answer, p); !reflect.DeepEqual(r.Steps, want) {
				t.Fatalf("row %q %q has steps %#v, want %#v", r.Outcome, r.When, r.Steps, want)
			}
			if r.Outcome == "" || r.When == "" || r.Then == "" {
				t.Fatalf("row %+v says too little", r)
			}
			for _, s := range r.Steps {
				if text := settle.Describe(s); text == "" || strings.ContainsAny(text, "\n|") {
					t.Fatalf("step %#v is described as %q", s, text)
				}
			}
		}
	})
}
