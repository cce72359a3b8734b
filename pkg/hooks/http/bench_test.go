package http

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/rsctl/rsctl/pkg/hooks"
	"github.com/rsctl/rsctl/pkg/hooks/internal/hooktest"
	"github.com/rsctl/rsctl/pkg/hooks/setup"
)

// BenchmarkHTTP posts with 64 calls in flight through the http hook and through
// a bare keep-alive client, and reports how much of the client's speed is left.
func BenchmarkHTTP(b *testing.B) {
	const inFlight = 64
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		w.WriteHeader(http.StatusNoContent)
	}))
	defer s.Close()
	body := bytes.Repeat([]byte("x"), 512)
	client := &http.Client{Timeout: time.Minute, Transport: &http.Transport{MaxIdleConnsPerHost: inFlight}}
	defer client.CloseIdleConnections()
	bare := func() {
		res, err := client.Post(s.URL, "application/json", bytes.NewReader(body))
		if err != nil {
			b.Error(err)
			return
		}
		io.Copy(io.Discard, res.Body)
		res.Body.Close()
	}
	hook, err := New(httpHandler(s.URL), setup.Options{Concurrency: inFlight})
	if err != nil {
		b.Fatal(err)
	}
	defer hook.(hooks.Closer).Close()
	m := hooks.Message{
		Queue: "orders", RoutingKey: "orders", MessageID: "1", ContentType: "application/json", Attempt: 1, Body: body,
		Headers: map[string]any{"tenant": "a"},
	}
	ours := func() {
		ctx, cancel := context.WithTimeout(b.Context(), time.Minute)
		defer cancel()
		if o, err := hook.Handle(ctx, m); err != nil || o.Verdict != hooks.Ack {
			b.Error(o, err)
		}
	}
	hooktest.ReportRatio(b, inFlight, 1000, bare, ours)
}
