package http

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rsctl/rsctl/pkg/hooks"
	"github.com/rsctl/rsctl/pkg/hooks/http/internal/transport"
	"github.com/rsctl/rsctl/pkg/hooks/internal/hooktest"
)

// The old server lives on, and no connection to it is ever idle: three calls
// overlap all the time.
func TestAddress_NewOneIsFollowedWithin90Seconds(t *testing.T) {
	t.Parallel()
	overEveryWay(t, func(t *testing.T, w way) {
		const moves = 30 * time.Second
		start := time.Now()
		a := newAuthority(t)
		pair := a.pair(time.Hour)
		var lastBefore, lastAfter lastTime
		before, after := w.serve(t, pair, lastBefore.set), w.serve(t, pair, lastAfter.set)
		e := w.endpoint(t, a, func(ctx context.Context, network, addr string) (net.Conn, error) {
			if time.Since(start) < moves {
				return before.dial(ctx, network, addr)
			}
			return after.dial(ctx, network, addr)
		})
		var calls sync.WaitGroup
		for i := range 3 {
			calls.Go(func() {
				time.Sleep(time.Duration(i) * 200 * time.Millisecond)
				for time.Since(start) < moves+4*time.Minute {
					if o := hooktest.Handle(t, e, w.message()); o.Verdict != hooks.Ack {
						t.Errorf("got %+v, want Ack", o)
					}
				}
			})
		}
		calls.Wait()
		if took := lastBefore.get().Sub(start) - moves; took > 90*time.Second {
			t.Errorf("the old address still got requests %v after the change", took)
		}
		if time.Since(lastAfter.get()) > 2*time.Second {
			t.Error("the new address got no requests at the end")
		}
	})
}

// lastTime remembers when the last request came.
type lastTime struct {
	mu sync.Mutex
	at time.Time
}

// set handles a request, which takes a while.
func (l *lastTime) set(http.ResponseWriter, *http.Request) {
	l.mu.Lock()
	l.at = time.Now()
	l.mu.Unlock()
	time.Sleep(700 * time.Millisecond)
}

func (l *lastTime) get() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.at
}

// An address behind which nobody answers, not even with a refusal.
func TestUnavailable_BlackHole(t *testing.T) {
	t.Parallel()
	for timeout, want := range map[time.Duration]struct {
		after  time.Duration
		reason string
	}{
		5 * time.Second:  {5 * time.Second, "connecting took longer than the timeout of 5s"},
		30 * time.Second: {transport.DialFor, "connecting timed out"},
	} {
		t.Run(fmt.Sprint(timeout), func(t *testing.T) {
			t.Parallel()
			for _, w := range ways[:2] {
				synctest.Test(t, func(t *testing.T) {
					e := w.endpoint(t, nil, func(ctx context.Context, _, _ string) (net.Conn, error) {
						ctx, cancel := context.WithTimeout(ctx, newDialer().Timeout)
						defer cancel()
						<-ctx.Done()
						return nil, &net.OpError{Op: "dial", Net: "tcp", Err: os.ErrDeadlineExceeded}
					})
					e.h.Timeout = timeout
					start := time.Now()
					o, err := e.Handle(hooktest.Deadline(t, timeout), w.message())
					if took := time.Since(start); took != want.after {
						t.Errorf("%s: took %v, want %v", w.name, took, want.after)
					}
					hooktest.WantUnavailable(t, w.name, err, []string{want.reason})
					if o.Verdict != hooks.Failed {
						t.Errorf("%s: got %+v", w.name, o)
					}
				})
			}
		})
	}
}
