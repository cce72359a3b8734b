package metrics

import (
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/rsctl/rsctl/pkg/runtime/memory"
)

// bodies are the series of the message bodies in memory. They are looked up when
// somebody asks, so that a delivery costs nothing.
type bodies struct{ of atomic.Pointer[memory.Bodies] }

// use is what the bodies take; nothing before a run has any.
func (b *bodies) use() memory.Use {
	if of := b.of.Load(); of != nil {
		return of.Use()
	}
	return memory.Use{}
}

func (b *bodies) all() []prometheus.Collector {
	gauge := func(name, help string, value func(memory.Use) int64) prometheus.Collector {
		return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, func() float64 { return float64(value(b.use())) })
	}
	return []prometheus.Collector{
		gauge("rsctl_max_in_memory_bytes", "What max_in_memory says.", func(u memory.Use) int64 { return u.Limit }),
		gauge("rsctl_unsettled_body_bytes", "Bodies of the deliveries in hand, whether their handler waits or runs.", func(u memory.Use) int64 { return u.Unsettled }),
		gauge("rsctl_held_body_bytes", "Bodies of the copies that wait in this process until their delay is over.", func(u memory.Use) int64 { return u.Held }),
		prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: "rsctl_memory_waits_total",
			Help: "How often a delivery had to wait because bodies in hand had reached max_in_memory.",
		}, func() float64 { return float64(b.use().Waits) }),
	}
}

// Watch shows what b takes from now on.
func (m *Metrics) Watch(b *memory.Bodies) { m.bodies.of.Store(b) }
