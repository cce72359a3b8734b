package metrics

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/rsctl/rsctl/pkg/runtime"
)

// queue is the series of one queue.
type queue struct {
	deliveries              map[runtime.Ending]prometheus.Counter // not written after its making
	spent, unavailable      prometheus.Counter
	copies                  *prometheus.CounterVec // by purpose and result
	unsettled, running      prometheus.Gauge
	inFlight, held          prometheus.Gauge
	consuming, paused       prometheus.Gauge
	stalled                 prometheus.Gauge
	attempts, duration, lag prometheus.Observer
}

func (q *queue) observe(e runtime.Event) {
	switch e := e.(type) {
	case runtime.Received:
		q.unsettled.Inc()
	case runtime.HookStarted:
		q.started(e)
	case runtime.HookEnded:
		q.ended(e)
	case runtime.Settled:
		q.settled(e)
	case runtime.CopyStarted:
		q.inFlight.Inc()
	case runtime.CopyEnded:
		q.inFlight.Dec()
		q.copies.WithLabelValues(purposeName(e.Purpose), string(e.Result)).Inc()
	case runtime.CopyHeld:
		q.held.Inc()
	case runtime.CopyReleased:
		q.held.Dec()
	case runtime.CopyStalled:
		q.stalled.Inc()
	case runtime.CopyMoved:
		q.stalled.Dec()
	case runtime.Consuming:
		q.consuming.Set(1)
	case runtime.NotConsuming:
		q.consuming.Set(0)
	case runtime.Paused:
		q.paused.Set(1)
	case runtime.Resumed:
		q.paused.Set(0)
	}
}

func (q *queue) started(e runtime.HookStarted) {
	q.running.Inc()
	if e.Lag > 0 {
		q.lag.Observe(e.Lag.Seconds())
	}
}

func (q *queue) ended(e runtime.HookEnded) {
	q.running.Dec()
	if e.Err != nil {
		q.unavailable.Inc()
		return
	}
	q.attempts.Observe(float64(e.Attempt))
	q.duration.Observe(e.Took.Seconds())
}

func (q *queue) settled(e runtime.Settled) {
	q.unsettled.Dec()
	if c := q.deliveries[e.Ending]; c != nil {
		c.Inc()
	}
	if e.Spent {
		q.spent.Inc()
	}
}

// link counts the connections of one purpose. Each is known by the first of the
// queues it consumes.
type link struct {
	connected  prometheus.Gauge
	reconnects prometheus.Counter

	mu     sync.Mutex
	before map[string]bool // it has been open before
	lost   map[string]bool
}

func newLink(connected prometheus.Gauge, reconnects prometheus.Counter) *link {
	return &link{connected: connected, reconnects: reconnects, before: map[string]bool{}, lost: map[string]bool{}}
}

func (l *link) up(queues []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	name := first(queues)
	if l.before[name] {
		l.reconnects.Inc()
	}
	l.before[name] = true
	delete(l.lost, name)
	if len(l.lost) == 0 {
		l.connected.Set(1)
	}
}

func (l *link) down(queues []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lost[first(queues)] = true
	l.connected.Set(0)
}

func first(queues []string) string {
	if len(queues) == 0 {
		return ""
	}
	return queues[0]
}
