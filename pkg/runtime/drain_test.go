package runtime

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/rsctl/rsctl/pkg/hooks"
	"github.com/rsctl/rsctl/pkg/settle"
)

func TestADrainWaitsForWhatAQuorumQueueDoesNotShowYet(t *testing.T) {
	t.Parallel()
	requeue := settle.Reject{Requeue: true}
	for _, tt := range []struct {
		name string
		kind settle.Type
		step settle.Step
		want bool
	}{
		{"a requeue on a quorum queue comes back once the log is written", settle.Quorum, requeue, true},
		{"a requeue on a classic queue is there at once", settle.Classic, requeue, false},
		{"an ack does not come back", settle.Quorum, settle.Ack{}, false},
		{"nor does a reject", settle.Quorum, settle.Reject{}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				log, _ := bufferedLog()
				c := newConsumer(Queue{Policy: settle.Policy{Queue: "q", Type: tt.kind}}, shared{log: log})
				if c.returning() {
					t.Error("something returns before anything was settled")
				}
				c.settlement(lifetimes{}, unsentDelivery(), hooks.Outcome{}).requeued(tt.step)
				if got := c.returning(); got != tt.want {
					t.Errorf("returning() = %v, want %v", got, tt.want)
				}
				time.Sleep(returnsFor)
				if c.returning() {
					t.Error("it is waited for without an end")
				}
			})
		})
	}
}
