package runtime

import (
	"sync"
	"sync/atomic"
)

// subscriber has the queue's consumer on the broker: it starts and ends it, one
// after the other, and sees to it that none costs more than it must.
type subscriber struct {
	*settler
	handlers   sync.WaitGroup // one per delivery in hand, and their subscriptions'
	caution    *caution
	successors successors
	finishing  *finishing // nil: a stop hands back at once

	parked     atomic.Int64 // messages that have nowhere to go
	tags       atomic.Int64
	unanswered bool // the broker has not answered the last basic.consume
	latest     atomic.Pointer[subscription]
}

func newSubscriber(r *settler) *subscriber {
	return &subscriber{settler: r, caution: newCaution(r.q, r.own)}
}
