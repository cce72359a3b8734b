package runtime

import (
	"errors"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rsctl/rsctl/pkg/runtime/internal/recall"
	"github.com/rsctl/rsctl/pkg/settle"
)

const (
	// suspectsInARow is how many suspects must come one after the other before a
	// queue slows down, where suspects are common: other processes return messages
	// whose handlers fail, and those look the same.
	suspectsInARow = 3
	// calm is after how many other deliveries a single suspect is rare enough.
	calm = 100
	// aloneTimes the prefetch is how many suspects run one at a time: a process that
	// died had no more than its prefetch in hand.
	aloneTimes = 2
)

var errOtherPrefetch = errors.New("subscribing with another prefetch")

// caution keeps one message that kills its process from taking others along. A
// quorum queue counts an attempt for each delivery that a dead process had in
// hand, and puts all of them at its head. A suspect is a delivery that comes back
// counted and was not returned by this process. Suspects run one at a time, with
// nothing prefetched beside them, so that only the one that kills is counted again.
// A process begins like that, and goes on like that until the first delivery that
// is not counted, or until the queue that it polls is empty.
//
// It belongs to the goroutine that reads the deliveries, but for own.
type caution struct {
	applies bool
	goes    bool // the queue goes when nobody consumes it
	// free is set where a cancelled consumer may hand back what it holds for nothing.
	// Elsewhere a queue that is open stays open, and begins by polling.
	free   bool
	alone  bool // one message at a time
	most   int  // suspects that run alone
	row    int  // suspects without another delivery between them; trusting: none are
	others int  // deliveries since the last suspect
	own    *recall.Returns
}

// trusting is the row of a queue whose counted deliveries are nobody's fault, up
// to the next one that is not counted.
const trusting = -1

// newCaution: the deliveries of a queue with a single active consumer must not
// pass to another process, as they would between two subscriptions, and a batch
// that holds its delayed messages would stop the queue.
func newCaution(q Queue, own *recall.Returns) *caution {
	held := q.Policy.Delay != nil && q.Policy.Delay.Mode == settle.ModeHold
	applies := q.Policy.Type == settle.Quorum && q.Prefetch > 1 && !q.Consumer.SingleActive && (q.Batch.Size == 0 || !held)
	return &caution{applies: applies, goes: q.GoesUnused, alone: applies, most: aloneTimes * q.Prefetch, others: calm, own: own}
}

// serve notes what the server does, before each subscription. A queue that goes
// with its last consumer needs one from the start.
func (k *caution) serve(free bool) {
	k.free = free
	if k.goes && !free {
		k.alone = false
	}
}

// polls reports whether messages are to be taken one at a time without a consumer.
func (k *caution) polls() bool { return k.alone && !k.free }

func (k *caution) prefetch(full int) int {
	if k.alone {
		return 1
	}
	return full
}

// change is what a delivery means for the prefetch of its queue.
type change int

const (
	unchanged change = iota
	opens            // from one at a time to all that may be
	retreats         // the other way round
)

// meet judges a delivery that comes in.
func (k *caution) meet(d *amqp.Delivery) change {
	switch {
	case !k.applies:
		return unchanged
	case !counted(d):
		k.row = 0
		k.others++
		if k.alone {
			k.alone = false
			return opens
		}
		return unchanged
	case k.row == trusting, k.own.Has(d):
		return unchanged
	}
	rare := k.others >= calm
	k.row++
	k.others = 0
	switch {
	case k.alone && k.row > k.most:
		k.alone, k.row = false, trusting
		return opens
	case !k.alone && k.free && (rare || k.row >= suspectsInARow):
		k.alone, k.row = true, 0
		return retreats
	}
	return unchanged
}

// reconnected notes that a connection or channel was lost: the deliveries that
// this process had in hand come back counted, and it lives.
func (k *caution) reconnected() {
	if !k.alone {
		k.row = trusting
	}
}

// counted reports whether the server has counted an attempt of d.
func counted(d *amqp.Delivery) bool {
	n, _ := d.Headers["x-delivery-count"].(int64)
	return d.Redelivered && n > 0
}
