package topology_test

import (
	"reflect"
	"testing"
	"time"

	"github.com/rsctl/rsctl/pkg/settle"
	"github.com/rsctl/rsctl/pkg/spec"
	"github.com/rsctl/rsctl/pkg/topology"
)

func TestPolicyCarriesEveryKeyThatSettles(t *testing.T) {
	t.Parallel()
	q := spec.Queue{
		Name: "orders", Type: spec.Classic, MaxAttempts: 5, DeadLetter: "orders.dead", RetryOriginal: spec.AckOriginal,
		RetryPublisher: &spec.RetryPublisher{Exchange: "retries"},
		Backoff:        &spec.Backoff{Initial: time.Second, Factor: 2, Max: time.Minute, Jitter: 0.1},
	}
	want := settle.Policy{
		Queue: "orders", Type: settle.Classic, MaxAttempts: 5, DeadLetter: "orders.dead", AckOriginal: true, RetryExchange: "retries",
		Backoff: &settle.Backoff{Initial: time.Second, Factor: 2, Max: time.Minute, Jitter: 0.1},
	}
	if got := topology.Policy(&q); !reflect.DeepEqual(got, want) {
		t.Errorf("Policy():\n got %+v\nwant %+v", got, want)
	}
}

func TestPolicyOfABareQueueDeclaresNothing(t *testing.T) {
	t.Parallel()
	q := spec.Queue{Name: "orders", Type: spec.Quorum, RetryOriginal: spec.RejectOriginal}
	want := settle.Policy{Queue: "orders", Type: settle.Quorum}
	if got := topology.Policy(&q); !reflect.DeepEqual(got, want) {
		t.Errorf("Policy():\n got %+v\nwant %+v", got, want)
	}
}
