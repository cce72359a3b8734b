package e2e

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"strconv"
	"sync"
	"testing"
	"time"
)

// An endpoint is an HTTP handler that can go away, as in a deploy: it finishes
// what it has begun and then refuses connections, until it is back at the same
// address. It acks, and notes every call, unless fail has an answer.
type endpoint struct {
	t       *testing.T
	address string
	server  *http.Server
	serving sync.WaitGroup

	mu    sync.Mutex
	calls map[string][]int // attempts of each message, in the order of the calls
	acked map[string]bool
	fails int // calls that were answered by fail
	fail  http.HandlerFunc
	first time.Time // arrival of the first call since it came back
}

func newEndpoint(t *testing.T) *endpoint {
	t.Helper()
	e := &endpoint{t: t, address: quietAddress(t), calls: map[string][]int{}, acked: map[string]bool{}}
	e.open()
	t.Cleanup(func() {
		_ = e.server.Close()
		e.serving.Wait()
	})
	return e
}

// quietAddress is free, and has a port that no kernel hands out and no node here
// takes, so that nobody else has it while the endpoint is away.
func quietAddress(t *testing.T) string {
	t.Helper()
	for range 100 {
		address := fmt.Sprintf("127.0.0.1:%d", 10_000+rand.IntN(10_000))
		if l, err := net.Listen("tcp", address); err == nil {
			l.Close()
			return address
		}
	}
	t.Fatal("no free TCP port between 10000 and 20000")
	return ""
}

func (e *endpoint) open() {
	e.t.Helper()
	l, err := net.Listen("tcp", e.address)
	if err != nil {
		e.t.Fatal(err)
	}
	e.mu.Lock()
	e.first = time.Time{}
	e.mu.Unlock()
	e.server = &http.Server{Handler: e}
	server := e.server
	e.serving.Go(func() { server.Serve(l) }) //nolint:errcheck // ends with the test
}

// away returns when nobody is at the address any more and every call has its
// answer.
func (e *endpoint) away() {
	e.t.Helper()
	if err := e.server.Shutdown(e.t.Context()); err != nil {
		e.t.Fatal(err)
	}
}

func (e *endpoint) answer(fail http.HandlerFunc) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.fail = fail
}

// ServeHTTP notes one call and answers it.
func (e *endpoint) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	attempt, _ := strconv.Atoi(r.Header.Get("RSCTL-Attempt"))
	id := r.Header.Get("RSCTL-Message-Id")
	e.mu.Lock()
	if e.first.IsZero() {
		e.first = time.Now()
	}
	e.calls[id] = append(e.calls[id], attempt)
	fail := e.fail
	if fail != nil {
		e.fails++
	} else {
		e.acked[id] = true
	}
	e.mu.Unlock()
	if fail != nil {
		fail(w, r)
	}
}

// firstCall is when the first call came since it is back; zero when none has.
func (e *endpoint) firstCall() time.Time {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.first
}

// counts returns how many messages were acked, how many calls there were, and how
// many of them were later attempts than the first.
func (e *endpoint) counts() (acked, calls, later int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, attempts := range e.calls {
		calls += len(attempts)
		for _, n := range attempts {
			if n > 1 {
				later++
			}
		}
	}
	return len(e.acked), calls, later
}

func (e *endpoint) failed() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.fails
}

// A sample is one answer of /readyz.
type sample struct {
	asked, answered time.Time
	status          int
	text            string
}

// readiness asks /readyz again and again until the test ends.
type readiness struct {
	mu      sync.Mutex
	samples []sample
	stop    context.CancelFunc
	asking  sync.WaitGroup
}

func watchReadiness(t *testing.T, address string) *readiness {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	r := &readiness{stop: stop}
	r.asking.Go(func() {
		for ctx.Err() == nil {
			if s, err := askReady(ctx, address); err == nil {
				r.mu.Lock()
				r.samples = append(r.samples, s)
				r.mu.Unlock()
			}
			select {
			case <-time.After(50 * time.Millisecond):
			case <-ctx.Done():
			}
		}
	})
	t.Cleanup(r.end)
	return r
}

func (r *readiness) end() {
	r.stop()
	r.asking.Wait()
}

// between returns the samples that were asked for and answered in a span.
func (r *readiness) between(from, to time.Time) []sample {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []sample
	for _, s := range r.samples {
		if s.asked.After(from) && s.answered.Before(to) {
			out = append(out, s)
		}
	}
	return out
}
