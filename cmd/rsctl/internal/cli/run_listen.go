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

// serve answers /healthz, /readyz and /metrics until stop is called, and returns
// the observer that feeds them; nil when there is nothing to feed. An address
// that was asked for must be free. The default one may be taken, most likely by
// another rsctl on this machine, which must not keep this one from working.
func (f listenFlag) serve(ctx context.Context, queues []string, bodies *memory.Bodies, log *slog.Logger) (o runtime.Observer, stop func(), err error) {
	if f.addr == "" {
		return nil, func() {}, nil
	}
	v := readVersion()
	m := metrics.New(metrics.Build{Version: v.Version, Revision: v.Revision, GoVersion: v.Go}, queues)
	m.Watch(bodies)
	if f.logDrops != nil {
		m.LogDrops(f.logDrops)
	}
	status := monitor.NewStatus(queues)
	server, err := monitor.Listen(ctx, f.addr, f.guard(monitor.Handler(status, m.Handler()), log), log)
	switch {
	case err == nil:
		log.Info("serving /healthz, /readyz and /metrics", "address", server.Addr())
		return runtime.Observers{m, status}, server.Close, nil
	case f.given():
		return nil, nil, &failure{
			err:  fmt.Errorf("cannot serve health and metrics: %w", err),
			hint: `pick another address with --listen, or none with --listen ""`,
		}
	}
	log.Warn(`health and metrics are not served: pick an address with --listen, or none with --listen ""`, "error", err)
	return nil, func() {}, nil
}
