package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/rsctl/rsctl/pkg/runtime"
	"github.com/rsctl/rsctl/pkg/settle"
)

// vectors are the metrics that have labels.
type vectors struct {
	deliveries, spent, unavailable, copies, reconnects *prometheus.CounterVec
	unsettled, running, inFlight, held                 *prometheus.GaugeVec
	consuming, paused, connected, stalled              *prometheus.GaugeVec
	attempts, duration, lag                            *prometheus.HistogramVec
}

// The buckets. A hook takes from a millisecond to the minutes of a long timeout.
// Lags are known to a second only, since AMQP timestamps are.
var (
	attemptBuckets  = []float64{1, 2, 3, 5, 10, 20, 50}
	durationBuckets = []float64{.001, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300}
	lagBuckets      = []float64{1, 2, 5, 10, 30, 60, 300, 900, 3600, 14400, 86400}
)

func newVectors() *vectors {
	return &vectors{
		deliveries: counter("rsctl_deliveries_total",
			"Deliveries that have ended, by outcome: the handler's (ack, drop, retry, retry_after), handed_back before any handler has seen it, or lost with its channel.", "queue", "outcome"),
		spent: counter("rsctl_spent_total",
			"Messages that failed their last attempt: dead-lettered, or discarded without a dead-letter queue.", "queue"),
		unavailable: counter("rsctl_handler_unavailable_total",
			"Handler calls that could not be made: command not found, connection refused. They spend no attempt.", "queue"),
		copies: counter("rsctl_copies_total",
			"Tries to publish a copy or a reply, by purpose (retry, delay, dead_letter, reply) and result.", "queue", "purpose", "result"),
		reconnects: counter("rsctl_reconnects_total",
			"Connections opened after the first, by what they are for.", "connection"),
		unsettled: gauge("rsctl_unsettled_deliveries",
			"Deliveries in hand: their handler waits or runs, or their settlement waits.", "queue"),
		running:   gauge("rsctl_handlers_in_flight", "Handlers that run.", "queue"),
		inFlight:  gauge("rsctl_copies_in_flight", "Copies on their way: not confirmed yet.", "queue"),
		held:      gauge("rsctl_held_copies", "Copies that wait in this process until their delay is over (delay: timer).", "queue"),
		consuming: gauge("rsctl_queue_consuming", "1 while a consumer of the queue is registered.", "queue"),
		paused:    gauge("rsctl_queue_paused", "1 while the queue waits for a handler that cannot be run.", "queue"),
		stalled:   gauge("rsctl_copies_waiting", "Copies that cannot arrive and are tried again; their queue is paused meanwhile.", "queue"),
		connected: gauge("rsctl_connected", "1 while the connection is open, by what it is for.", "connection"),
		attempts: histogram("rsctl_attempts",
			"Number of the attempt of each handler call; the first counts as 1.", attemptBuckets),
		duration: histogram("rsctl_handler_duration_seconds",
			"How long handlers ran; calls that could not be made are left out.", durationBuckets),
		lag: histogram("rsctl_first_attempt_lag_seconds",
			"From the message's timestamp property to its first attempt; messages without one are left out.", lagBuckets),
	}
}

func (v *vectors) all() []prometheus.Collector {
	return []prometheus.Collector{
		v.deliveries, v.spent, v.unavailable, v.copies, v.reconnects,
		v.unsettled, v.running, v.inFlight, v.held,
		v.consuming, v.paused, v.connected, v.stalled,
		v.attempts, v.duration, v.lag,
	}
}

func counter(name, help string, labels ...string) *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
}

func gauge(name, help string, labels ...string) *prometheus.GaugeVec {
	return prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, labels)
}

func histogram(name, help string, buckets []float64) *prometheus.HistogramVec {
	return prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets}, []string{"queue"})
}

// queue looks every series of a queue up once, so that a delivery costs none.
func (v *vectors) queue(name string) *queue {
	q := &queue{
		deliveries:  map[runtime.Ending]prometheus.Counter{},
		spent:       v.spent.WithLabelValues(name),
		unavailable: v.unavailable.WithLabelValues(name),
		copies:      v.copies.MustCurryWith(prometheus.Labels{"queue": name}),
		unsettled:   v.unsettled.WithLabelValues(name),
		running:     v.running.WithLabelValues(name),
		inFlight:    v.inFlight.WithLabelValues(name),
		held:        v.held.WithLabelValues(name),
		consuming:   v.consuming.WithLabelValues(name),
		stalled:     v.stalled.WithLabelValues(name),
		paused:      v.paused.WithLabelValues(name),
		attempts:    v.attempts.WithLabelValues(name),
		duration:    v.duration.WithLabelValues(name),
		lag:         v.lag.WithLabelValues(name),
	}
	for _, e := range runtime.Endings() {
		q.deliveries[e] = v.deliveries.WithLabelValues(name, string(e))
	}
	for _, p := range []settle.Purpose{settle.ForRetry, settle.ForDelay, settle.ForDeadLetter} {
		q.copies.WithLabelValues(purposeName(p), string(runtime.CopyConfirmed))
	}
	return q
}

func (v *vectors) link(purpose string) *link {
	return newLink(v.connected.WithLabelValues(purpose), v.reconnects.WithLabelValues(purpose))
}

// purposeName is the word for a purpose in labels.
func purposeName(p settle.Purpose) string {
	switch p {
	case settle.ForDelay:
		return "delay"
	case settle.ForDeadLetter:
		return "dead_letter"
	case settle.ForReply:
		return "reply"
	default:
		return "retry"
	}
}
