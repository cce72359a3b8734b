package metrics_test

import (
	"log/slog"
	"testing"

	"github.com/rsctl/rsctl/pkg/runtime/memory"
)

func TestBodiesInMemoryAreShown(t *testing.T) {
	t.Parallel()
	m := newMetrics("q")
	wantText(t, m, bodiesText("0", "0", "0", "0"), bodyMetrics...)
	b := memory.NewBodies(1000, slog.New(slog.DiscardHandler))
	m.Watch(b)
	b.Received(700)
	if _, ok := b.Held().Take(300, nil, nil); !ok {
		t.Fatal("no room")
	}
	over := make(chan struct{})
	close(over)
	b.Handled().Take(2000, nil, nil) // the one above the ceiling
	b.Handled().Take(2000, over, nil)
	wantText(t, m, bodiesText("700", "300", "1000", "1"), bodyMetrics...)
}

var bodyMetrics = []string{"rsctl_unsettled_body_bytes", "rsctl_held_body_bytes", "rsctl_max_in_memory_bytes", "rsctl_memory_waits_total"}

func bodiesText(unsettled, held, limit, waits string) string {
	return `
# HELP rsctl_held_body_bytes Bodies of the copies that wait in this process until their delay is over.
# TYPE rsctl_held_body_bytes gauge
rsctl_held_body_bytes ` + held + `
# HELP rsctl_max_in_memory_bytes What max_in_memory says.
# TYPE rsctl_max_in_memory_bytes gauge
rsctl_max_in_memory_bytes ` + limit + `
# HELP rsctl_memory_waits_total How often a delivery had to wait because bodies in hand had reached max_in_memory.
# TYPE rsctl_memory_waits_total counter
rsctl_memory_waits_total ` + waits + `
# HELP rsctl_unsettled_body_bytes Bodies of the deliveries in hand, whether their handler waits or runs.
# TYPE rsctl_unsettled_body_bytes gauge
rsctl_unsettled_body_bytes ` + unsettled + `
`
}
