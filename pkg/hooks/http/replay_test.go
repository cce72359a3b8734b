package http

import (
	"net/http"
	"net/http/httptrace"
	"sync/atomic"
	"testing"

	"github.com/rsctl/rsctl/pkg/hooks"
	"github.com/rsctl/rsctl/pkg/hooks/http/internal/exchange"
	"github.com/rsctl/rsctl/pkg/hooks/internal/hooktest"
)

// What a kept connection loses may have been lost because the server closed it
// while it was idle, so it is sent once more, and only once.
func TestReplay_RequestThatAKeptConnectionLosesIsSentOnceMore(t *testing.T) {
	t.Parallel()
	overEveryWay(t, func(t *testing.T, w way) {
		for _, tt := range []struct {
			name string
			cuts map[int32]bool // requests whose connection is cut, from 1
			want []hooks.Verdict
			sent int32
		}{
			{"a new connection that is cut is a failure", map[int32]bool{1: true}, []hooks.Verdict{hooks.Failed}, 1},
			{"a kept connection that is cut costs nothing", map[int32]bool{2: true}, []hooks.Verdict{hooks.Ack, hooks.Ack}, 3},
			{"the second one is not replaced", map[int32]bool{2: true, 3: true}, []hooks.Verdict{hooks.Ack, hooks.Failed, hooks.Ack}, 4},
		} {
			var p *peer
			var e *endpoint
			var sent atomic.Int32
			p, e = w.start(t, func(_ http.ResponseWriter, r *http.Request) {
				if tt.cuts[sent.Add(1)] {
					p.cut(r)
				}
			})
			for i, want := range tt.want {
				if o := hooktest.Handle(t, e, w.message()); o.Verdict != want {
					t.Errorf("%s: message %d: got %+v, want verdict %d", tt.name, i+1, o, want)
				}
			}
			if n := sent.Load(); n != tt.sent {
				t.Errorf("%s: the server got %d requests, want %d", tt.name, n, tt.sent)
			}
		}
	})
}

// Once the server has begun to answer, it has had the request.
func TestReplay_RequestWhoseAnswerHasBegunIsNotSentAgain(t *testing.T) {
	t.Parallel()
	overEveryWay(t, func(t *testing.T, w way) {
		var p *peer
		var e *endpoint
		var sent atomic.Int32
		begun := make(chan struct{})
		p, e = w.start(t, func(rw http.ResponseWriter, r *http.Request) {
			if sent.Add(1) != 2 {
				return
			}
			rw.WriteHeader(http.StatusServiceUnavailable)
			rw.(http.Flusher).Flush()
			if w.size > exchange.MaxSmallBody || w.tls { // the other way of sending has no trace
				<-begun
			}
			p.cut(r)
		})
		hooktest.Handle(t, e, w.message())
		ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{GotFirstResponseByte: func() { close(begun) }})
		if o, err := e.Handle(ctx, w.message()); err != nil || o.Verdict != hooks.Retry || sent.Load() != 2 {
			t.Errorf("got %+v, %v after %d requests, want what the status says", o, err, sent.Load())
		}
	})
}

// A server that closes each connection by its protocol, as one that restarts
// does, loses nothing and gets nothing twice.
func TestReplay_ServerThatEndsItsConnectionsGetsEachRequestOnce(t *testing.T) {
	t.Parallel()
	overEveryWay(t, func(t *testing.T, w way) {
		var handled atomic.Int32
		_, e := w.start(t, func(rw http.ResponseWriter, _ *http.Request) {
			handled.Add(1)
			rw.Header().Set("Connection", "close") // over HTTP/2 it becomes a GOAWAY
		})
		const n = 40
		hooktest.InParallel(8, n, func() {
			if o := hooktest.Handle(t, e, w.message()); o.Verdict != hooks.Ack {
				t.Errorf("got %+v, want Ack", o)
			}
		})
		if got := handled.Load(); got != n {
			t.Errorf("the server handled %d requests for %d messages", got, n)
		}
	})
}
