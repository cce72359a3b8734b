// Package metrics counts what a run does, for Prometheus.
//
// [Metrics] is a [runtime.Observer] with a registry of its own. Its labels are
// bounded: queues are those of the spec, the other values are closed sets. What
// a message holds never becomes a label.
package metrics

import (
	"net/http"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/rsctl/rsctl/pkg/runtime"
)

// Build is what rsctl_build_info says.
type Build struct{ Version, Revision, GoVersion string }

// Metrics is the state of all metrics. It is safe for concurrent use.
type Metrics struct {
	registry *prometheus.Registry
	queues   map[string]*queue
	links    map[string]*link // by purpose of the connection
	blocked  prometheus.Gauge
	bodies   bodies
	logDrops atomic.Pointer[func() uint64]
}

// New returns metrics of the named queues. Every series of theirs is there from
// the start, at 0, but those of copies that go wrong.
func New(b Build, queues []string) *Metrics {
	m := &Metrics{
		registry: prometheus.NewRegistry(),
		queues:   make(map[string]*queue, len(queues)),
		links:    map[string]*link{},
		blocked: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "rsctl_publish_blocked",
			Help: "1 while the broker blocks publishing (connection.blocked) and copies wait.",
		}),
	}
	v := newVectors()
	m.registry.MustRegister(v.all()...)
	m.registry.MustRegister(m.bodies.all()...)
	m.registry.MustRegister(m.blocked, m.dropped(), buildInfo(b), collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	for _, name := range queues {
		m.queues[name] = v.queue(name)
	}
	for _, purpose := range []string{"consume", "publish"} {
		m.links[purpose] = v.link(purpose)
	}
	return m
}

// LogDrops tells the metrics where to ask how many lines the log has dropped.
func (m *Metrics) LogDrops(count func() uint64) { m.logDrops.Store(&count) }

func (m *Metrics) dropped() prometheus.Collector {
	return prometheus.NewCounterFunc(prometheus.CounterOpts{
		Name: "rsctl_log_lines_dropped_total",
		Help: "Lines of the log that were dropped because nobody read them in time.",
	}, func() float64 {
		if count := m.logDrops.Load(); count != nil {
			return float64((*count)())
		}
		return 0
	})
}

func buildInfo(b Build) prometheus.Collector {
	g := prometheus.NewGauge(prometheus.GaugeOpts{
		Name:        "rsctl_build_info",
		Help:        "Always 1; the labels say what was built.",
		ConstLabels: prometheus.Labels{"version": b.Version, "revision": b.Revision, "goversion": b.GoVersion},
	})
	g.Set(1)
	return g
}

// Gatherer gives access to the metrics.
func (m *Metrics) Gatherer() prometheus.Gatherer { return m.registry }

// A scrape of a thousand queues takes milliseconds; more than a few at a time
// are no scrapes.
const (
	maxScrapes    = 4
	scrapeTimeout = 10 * time.Second
)

// Handler serves the metrics in the format that the client asks for: Prometheus
// text or OpenMetrics.
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{
		MaxRequestsInFlight: maxScrapes,
		Timeout:             scrapeTimeout,
		EnableOpenMetrics:   true,
	})
}

// Observe implements [runtime.Observer].
func (m *Metrics) Observe(e runtime.Event) {
	switch e := e.(type) {
	case runtime.Connected:
		if l := m.links[e.Purpose]; l != nil {
			l.up(e.Queues)
		}
	case runtime.Disconnected:
		if l := m.links[e.Purpose]; l != nil {
			l.down(e.Queues)
		}
	case runtime.Blocked:
		m.blocked.Set(1)
	case runtime.Unblocked:
		m.blocked.Set(0)
	default:
		if q := m.queues[queueOf(e)]; q != nil {
			q.observe(e)
		}
	}
}

// queueOf is the queue that an event is about; "" when it is about none.
func queueOf(e runtime.Event) string {
	switch e := e.(type) {
	case runtime.Received:
		return e.Queue
	case runtime.HookStarted:
		return e.Queue
	case runtime.HookEnded:
		return e.Queue
	case runtime.Settled:
		return e.Queue
	case runtime.CopyStarted:
		return e.Queue
	case runtime.CopyEnded:
		return e.Queue
	case runtime.CopyHeld:
		return e.Queue
	case runtime.CopyReleased:
		return e.Queue
	case runtime.Consuming:
		return e.Queue
	case runtime.NotConsuming:
		return e.Queue
	case runtime.Paused:
		return e.Queue
	case runtime.Resumed:
		return e.Queue
	}
	return ""
}
