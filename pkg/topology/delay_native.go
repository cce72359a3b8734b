package topology

import (
	"github.com/rsctl/rsctl/pkg/settle"
	"github.com/rsctl/rsctl/pkg/spec"
)

// native lets a quorum queue of RabbitMQ 4.3 or later wait by itself: the n-th
// return of a message becomes ready after min(n * Min, Max), whatever delay the
// hook asked for. The type is "failed" because only basic.reject counts there;
// max is always sent, since without it the server keeps every delay at min.
type native struct{}

func (native) needs(q *spec.Queue) fragment {
	return fragment{arguments: map[string]any{
		"x-delayed-retry-type": "failed",
		"x-delayed-retry-min":  q.Delay.Min.Milliseconds(),
		"x-delayed-retry-max":  q.Delay.Max.Milliseconds(),
	}}
}

func (native) delay(*spec.Queue) settle.Delay { return settle.Delay{Mode: settle.ModeNative} }
