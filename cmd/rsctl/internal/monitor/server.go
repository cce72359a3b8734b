package monitor

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"
)

// Bounds of one request, so that no client can keep anything for long, and of
// connections, each of which takes a descriptor that a handler may need.
const (
	headerTimeout = 5 * time.Second
	readTimeout   = 10 * time.Second
	writeTimeout  = 30 * time.Second
	idleTimeout   = time.Minute
	maxHeader     = 16 << 10
	closeTimeout  = time.Second
	maxConns      = 32
)

// Server serves until it is closed.
type Server struct {
	http    *http.Server
	addr    net.Addr
	conns   *crowd
	serving sync.WaitGroup
}

// Listen binds addr, host:port, and serves h there; port 0 picks a free one.
func Listen(ctx context.Context, addr string, h http.Handler, log *slog.Logger) (*Server, error) {
	var lc net.ListenConfig
	ln, err := lc.Listen(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	conns := newCrowd(maxConns)
	s := &Server{
		addr:  ln.Addr(),
		conns: conns,
		http: &http.Server{
			Handler:           conns.wrap(h),
			ConnState:         conns.state,
			ConnContext:       conns.context,
			ReadHeaderTimeout: headerTimeout,
			ReadTimeout:       readTimeout,
			WriteTimeout:      writeTimeout,
			IdleTimeout:       idleTimeout,
			MaxHeaderBytes:    maxHeader,
			ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelDebug),
		},
	}
	s.serving.Go(func() {
		if err := s.http.Serve(ln); err != http.ErrServerClosed {
			log.Error("health and metrics are not served any more", "error", err)
		}
	})
	return s, nil
}

// Addr is the address that was bound.
func (s *Server) Addr() string { return s.addr.String() }

// Close lets requests that are being answered finish, for a second at most, then
// cuts them.
func (s *Server) Close() {
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	if err := s.http.Shutdown(ctx); err != nil {
		_ = s.http.Close()
	}
	s.serving.Wait()
}
