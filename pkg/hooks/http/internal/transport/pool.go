package transport

import (
	"net/http"
	"sync"
	"time"

	"github.com/rsctl/rsctl/pkg/hooks/http/internal/exchange"
)

// transports hands out the transport of the moment. A transport knows no
// greatest age of a connection: one that is never idle, as that of HTTP/2, would
// never follow a name to its new address. So a new transport takes over once a
// minute.
type transports struct {
	build func() *http.Transport

	mu      sync.Mutex
	current *http.Transport
	born    time.Time
}

func (t *transports) get() *http.Transport {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.current == nil || time.Since(t.born) >= exchange.MaxAge {
		t.renew()
	}
	return t.current
}

// replace gives up old, whose kept connections have turned out to be dead.
func (t *transports) replace(old *http.Transport) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.current == old {
		t.renew()
	}
}

// renew leaves the old transport to the calls in flight, after which its
// connections are closed: at once, or of HTTP/2 after [exchange.IdleFor].
func (t *transports) renew() {
	if t.current != nil {
		t.current.CloseIdleConnections()
	}
	t.current, t.born = t.build(), time.Now()
}

func (t *transports) close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.current != nil {
		t.current.CloseIdleConnections()
	}
}

// once is a transport for a single request.
func (t *transports) once() *http.Transport {
	transport := t.build()
	transport.DisableKeepAlives = true
	return transport
}
