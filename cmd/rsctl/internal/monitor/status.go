// Package monitor lets orchestrators, load balancers and Prometheus look into a
// run over HTTP.
package monitor

import (
	"cmp"
	"strings"
	"sync"

	"github.com/rsctl/rsctl/cmd/rsctl/internal/logpipe"
	"github.com/rsctl/rsctl/pkg/runtime"
)

// Status is a [runtime.Observer] that knows whether the run does its work. It is
// safe for concurrent use.
type Status struct {
	mu       sync.Mutex
	draining string // why; "" while it is not
	names    []string
	queues   map[string]*queueState
}

// queueState holds why a queue is not served; "" where it is.
type queueState struct {
	idle, paused, stalled string
	copies                int // that cannot arrive
}

// why says why the queue is paused; "" when it is not.
func (q *queueState) why() string { return cmp.Or(q.paused, q.stalled) }

// Why a queue is not consumed although nothing has gone wrong.
const (
	notConnected  = "not connected to the broker yet"
	notSubscribed = "connected to the broker, not subscribed yet"
)

// NewStatus returns the status of a run of these queues that has not begun.
func NewStatus(queues []string) *Status {
	s := &Status{names: queues, queues: map[string]*queueState{}}
	for _, name := range queues {
		s.queues[name] = &queueState{idle: notConnected}
	}
	return s
}

// Observe implements [runtime.Observer].
func (s *Status) Observe(e runtime.Event) {
	switch e := e.(type) {
	case runtime.Consuming:
		s.update(e.Queue, func(q *queueState) { q.idle = "" })
	case runtime.NotConsuming:
		s.update(e.Queue, func(q *queueState) { q.idle = reason(e.Err) })
	case runtime.Paused:
		s.update(e.Queue, func(q *queueState) { q.paused = reason(e.Err) })
	case runtime.Resumed:
		s.update(e.Queue, func(q *queueState) { q.paused = "" })
	case runtime.CopyStalled:
		s.update(e.Queue, func(q *queueState) { q.copies++; q.stalled = "a copy cannot arrive: " + reason(e.Err) })
	case runtime.CopyMoved:
		s.update(e.Queue, (*queueState).moved)
	case runtime.Connected:
		s.connection(e.Purpose, e.Queues, notSubscribed)
	case runtime.Disconnected:
		if e.Err != nil {
			s.connection(e.Purpose, e.Queues, "no connection to the broker: "+reason(e.Err))
		}
	case runtime.Draining:
		s.mu.Lock()
		defer s.mu.Unlock()
		s.draining = reason(e.Cause)
	}
}

// moved takes note of a copy that does not wait any more.
func (q *queueState) moved() {
	if q.copies--; q.copies == 0 {
		q.stalled = ""
	}
}

func (s *Status) update(name string, do func(*queueState)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if q := s.queues[name]; q != nil {
		do(q)
	}
}

// connection tells queues what the connection that consumes them has come to.
func (s *Status) connection(purpose string, queues []string, why string) {
	if purpose != "consume" {
		return
	}
	for _, name := range queues {
		s.update(name, func(q *queueState) { q.idle = why })
	}
}

// Readiness is what /readyz answers, in JSON as it is.
type Readiness struct {
	Ready    bool    `json:"ready"`
	Draining string  `json:"draining,omitempty"` // why
	Queues   []Queue `json:"queues"`
}

// Queue is the readiness of one queue, in the spec's order.
type Queue struct {
	Name      string `json:"name"`
	Consuming bool   `json:"consuming"`
	Paused    bool   `json:"paused"`
	Reason    string `json:"reason,omitempty"` // why it is not consuming, or paused
}

func (q Queue) ready() bool { return q.Consuming && !q.Paused }

// Readiness is ready when every queue is consumed and none is paused.
func (s *Status) Readiness() Readiness {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := Readiness{Ready: s.draining == "", Draining: s.draining, Queues: []Queue{}}
	for _, name := range s.names {
		state := s.queues[name]
		q := Queue{Name: name, Consuming: state.idle == "", Paused: state.why() != "", Reason: state.idle}
		if q.Consuming {
			q.Reason = state.why()
		}
		r.Ready = r.Ready && q.ready()
		r.Queues = append(r.Queues, q)
	}
	return r
}

// reason is err as one line that cannot drive a terminal.
func reason(err error) string {
	if err == nil {
		return "stopped"
	}
	line := strings.Map(func(r rune) rune {
		if logpipe.Unsafe(r) {
			return ' '
		}
		return r
	}, err.Error())
	return strings.Join(strings.Fields(line), " ")
}
