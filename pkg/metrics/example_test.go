package metrics_test

import (
	"fmt"
	"net/http/httptest"
	"strings"

	"github.com/rsctl/rsctl/pkg/metrics"
	"github.com/rsctl/rsctl/pkg/runtime"
)

// Metrics are the Observer of a service, service.Options{Observer: m}, and are served
// where the program serves its own: http.Handle("/metrics", m.Handler()).
func ExampleMetrics() {
	m := metrics.New(metrics.Build{Version: "1.0.0"}, []string{"orders"})
	m.Observe(runtime.Settled{Queue: "orders", Ending: runtime.EndedAck})

	page := httptest.NewRecorder()
	m.Handler().ServeHTTP(page, httptest.NewRequest("GET", "/metrics", nil))
	for line := range strings.Lines(page.Body.String()) {
		if strings.HasPrefix(line, "rsctl_") && strings.Contains(line, `"ack"`) {
			fmt.Print(line)
		}
	}
	// Output:
	// rsctl_deliveries_total{outcome="ack",queue="orders"} 1
}
