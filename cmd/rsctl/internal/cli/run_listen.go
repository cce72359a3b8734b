package cli

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"slices"

	"github.com/rsctl/rsctl/cmd/rsctl/internal/monitor"
	"github.com/rsctl/rsctl/pkg/metrics"
	"github.com/rsctl/rsctl/pkg/runtime"
	"github.com/rsctl/rsctl/pkg/runtime/memory"
)

// defaultListen is reachable from the same machine only.
const defaultListen = "127.0.0.1:9419"

// listenFlag is --listen and whether somebody has asked for it.
type listenFlag struct {
	addr  string
	hosts []string // that requests may name
	given func() bool
	// logDrops is how many lines the log has dropped; nil: it drops none.
	logDrops func() uint64
}

// check refuses what can be no address; "" is none.
func (f listenFlag) check() error {
	if f.addr == "" {
		return nil
	}
	if _, _, err := net.SplitHostPort(f.addr); err != nil {
		return usagef(`for example 127.0.0.1:9419, :9419 or "" for none`, "--listen %q is not an address: %v", f.addr, err)
	}
	return nil
}

// guard answers only who asks for a name that this server has.
func (f listenFlag) guard(h http.Handler, log *slog.Logger) http.Handler {
	names := slices.Clone(f.hosts)
	if host, _, err := net.SplitHostPort(f.addr); err == nil && host != "" {
		names = append(names, host)
	}
	if host, err := os.Hostname(); err == nil {
		names = append(names, host)
	}
	return monitor.OnlyHosts(h, names, log)
}

// page is what /healthz, /readyz and /metrics show of a run; nil shows nothing.
type page struct {
	listenFlag
	metrics *metrics.Metrics
	status  *monitor.Status
}

// page returns the page of the named queues; nil when it would not be served.
func (f listenFlag) page(queues []string, bodies *memory.Bodies) *page {
	if f.addr == "" {
		return nil
	}
	v := readVersion()
	m := metrics.New(metrics.Build{Version: v.Version, Revision: v.Revision, GoVersion: v.Go}, queues)
	m.Watch(bodies)
	if f.logDrops != nil {
		m.LogDrops(f.logDrops)
	}
	return &page{f, m, monitor.NewStatus(queues)}
}

// observer is what feeds the page.
func (p *page) observer() runtime.Observer {
	if p == nil {
		return nil
	}
	return runtime.Observers{p.metrics, p.status}
}

// serve answers requests until stop is called. An address that was asked for must be
// free. The default one may be taken, most likely by another rsctl on this machine,
// which must not keep this one from working.
func (p *page) serve(ctx context.Context, log *slog.Logger) (stop func(), err error) {
	if p == nil {
		return func() {}, nil
	}
	server, err := monitor.Listen(ctx, p.addr, p.guard(monitor.Handler(p.status, p.metrics.Handler()), log), log)
	switch {
	case err == nil:
		log.Info("serving /healthz, /readyz and /metrics", "address", server.Addr())
		return server.Close, nil
	case p.given():
		return nil, &failure{
			err:  fmt.Errorf("cannot serve health and metrics: %w", err),
			hint: `pick another address with --listen, or none with --listen ""`,
		}
	}
	log.Warn(`health and metrics are not served: pick an address with --listen, or none with --listen ""`, "error", err)
	return func() {}, nil
}
