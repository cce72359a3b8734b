package monitor

import (
	"encoding/json"
	"fmt"
	"mime"
	"net/http"
	"strings"
)

// Handler answers /healthz (the process is alive), /readyz (it does its work)
// and /metrics. Only GET and HEAD are known, and nothing can be changed.
func Handler(s *Status, metrics http.Handler) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", metrics)
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, r *http.Request) {
		answer(w, r, http.StatusOK, "ok\n", map[string]string{"status": "ok"})
	})
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, r *http.Request) {
		ready := s.Readiness()
		status := http.StatusOK
		if !ready.Ready {
			status = http.StatusServiceUnavailable
		}
		answer(w, r, status, ready.text(), ready)
	})
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, r *http.Request) {
		paths := []string{"/healthz", "/readyz", "/metrics"}
		answer(w, r, http.StatusOK, strings.Join(paths, "\n")+"\n", paths)
	})
	return mux
}

// text is one line for each reason not to be ready.
func (r Readiness) text() string {
	if r.Ready {
		return "ready\n"
	}
	var b strings.Builder
	if r.Draining != "" {
		fmt.Fprintf(&b, "draining: %s\n", r.Draining)
	}
	for _, q := range r.Queues {
		switch {
		case !q.Consuming:
			fmt.Fprintf(&b, "queue %q is not consumed: %s\n", q.Name, q.Reason)
		case q.Paused:
			fmt.Fprintf(&b, "queue %q is paused: %s\n", q.Name, q.Reason)
		}
	}
	return b.String()
}

// answer writes text, or v as JSON to a client that asks for it.
func answer(w http.ResponseWriter, r *http.Request, status int, text string, v any) {
	h := w.Header()
	h.Set("Cache-Control", "no-store")
	h.Set("Vary", "Accept")
	h.Set("X-Content-Type-Options", "nosniff")
	body := []byte(text)
	if wantsJSON(r) {
		if data, err := json.Marshal(v); err == nil {
			h.Set("Content-Type", "application/json")
			body = append(data, '\n')
		}
	} else {
		h.Set("Content-Type", "text/plain; charset=utf-8")
	}
	w.WriteHeader(status)
	_, _ = w.Write(body) // a client that has gone needs no answer
}

// wantsJSON reports whether the client names JSON among what it accepts.
func wantsJSON(r *http.Request) bool {
	for _, value := range r.Header.Values("Accept") {
		for kind := range strings.SplitSeq(value, ",") {
			if media, _, err := mime.ParseMediaType(kind); err == nil && media == "application/json" {
				return true
			}
		}
	}
	return false
}
