package http

import (
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/rsctl/rsctl/pkg/hooks"
	"github.com/rsctl/rsctl/pkg/hooks/internal/hooktest"
	"github.com/rsctl/rsctl/pkg/spec"
)

// received is a request as the server saw it.
type received struct {
	*http.Request
	body string
}

// recording is a handler for an endpoint that acks; only returns the one request
// that has arrived there.
func recording(t *testing.T, edit func(h *spec.Handler)) (h *spec.Handler, only func() received) {
	t.Helper()
	got := make(chan received, 10)
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got <- received{r, string(body)}
	})
	h = httpHandler(s.URL + "/hook?a=b")
	if edit != nil {
		edit(h)
	}
	return h, func() received {
		t.Helper()
		if len(got) != 1 {
			t.Fatalf("%d requests arrived, want 1", len(got))
		}
		return <-got
	}
}

// capture posts m and returns what arrived, which must be one request.
func capture(t *testing.T, m hooks.Message, edit func(h *spec.Handler)) received {
	t.Helper()
	h, only := recording(t, edit)
	if o := handle(t, h, m); o.Verdict != hooks.Ack {
		t.Fatalf("got %+v, want Ack", o)
	}
	return only()
}

func wantHeaders(t *testing.T, r received, want map[string]string) {
	t.Helper()
	for name, value := range want {
		if got := r.Header.Values(name); !slices.Equal(got, []string{value}) {
			t.Errorf("%s: %.80q, want one %.80q", name, got, value)
		}
	}
}

func TestHTTPRequest(t *testing.T) {
	t.Parallel()
	m := hooks.Message{
		Queue: "orders", Exchange: "events", RoutingKey: "order.new", Attempt: 2, MaxAttempts: 5, Redelivered: true,
		MessageID: "m-1", CorrelationID: "c-1", ContentType: "application/json", ContentEncoding: "gzip", Type: "t",
		AppID: "shop", ReplyTo: "replies", Timestamp: 1_700_000_000_000, Priority: 3, Body: []byte(`{"id": 1}`),
		Headers: map[string]any{
			"Tenant": "a", "n": int64(-3), "list": []any{"a"}, "bin": []byte{0, 255}, "empty": "", "sp ace": "x",
		},
	}
	r := capture(t, m, nil)
	if r.Method != "POST" || r.URL.String() != "/hook?a=b" || r.body != `{"id": 1}` || r.ContentLength != 9 {
		t.Errorf("got %s %s with %d bytes %q", r.Method, r.URL, r.ContentLength, r.body)
	}
	wantHeaders(t, r, map[string]string{
		"Content-Type": "application/json", "User-Agent": "rsctl",
		"RSCTL-Queue": "orders", "RSCTL-Exchange": "events", "RSCTL-Routing-Key": "order.new", "RSCTL-Attempt": "2",
		"RSCTL-Max-Attempts": "5", "RSCTL-Redelivered": "true", "RSCTL-Message-Id": "m-1", "RSCTL-Correlation-Id": "c-1",
		"RSCTL-Content-Type": "application/json", "RSCTL-Content-Encoding": "gzip", "RSCTL-Type": "t",
		"RSCTL-App-Id": "shop", "RSCTL-Reply-To": "replies", "RSCTL-Timestamp": "1700000000000", "RSCTL-Priority": "3",
		"RSCTL-Header-Tenant": "a", "RSCTL-Header-N": "-3", "RSCTL-Header-List": `["a"]`,
		"RSCTL-Header-Bin": "%00%FF", "RSCTL-Header-Empty": "", "RSCTL-Header-Sp%20ace": "x",
	})
	for _, name := range []string{"Accept-Encoding", "Content-Encoding", "Idempotency-Key", "RSCTL-Headers-Omitted"} {
		if v, ok := r.Header[http.CanonicalHeaderKey(name)]; ok {
			t.Errorf("%s: %q was sent", name, v)
		}
	}
}

func TestHTTPNakedMessage(t *testing.T) {
	t.Parallel()
	r := capture(t, hooks.Message{Queue: "q", Attempt: 1}, nil)
	if r.ContentLength != 0 || r.Header.Get("Content-Length") != "0" {
		t.Errorf("Content-Length is %d (%q), want 0", r.ContentLength, r.Header.Get("Content-Length"))
	}
	wantHeaders(t, r, map[string]string{"RSCTL-Exchange": "", "RSCTL-Max-Attempts": "0", "RSCTL-Redelivered": "false"})
	if v, ok := r.Header["Content-Type"]; ok {
		t.Errorf("Content-Type %q was invented", v)
	}
}

func TestHTTPBodies(t *testing.T) {
	t.Parallel()
	all := make([]byte, 256)
	for i := range all {
		all[i] = byte(i)
	}
	for name, body := range map[string]string{
		"a NUL byte": "\x00", "every byte": string(all), "no line break at its end": "text", "a megabyte": strings.Repeat("x", 1<<20),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if r := capture(t, hooks.Message{Body: []byte(body)}, nil); r.body != body {
				t.Errorf("%d other bytes arrived", len(r.body))
			}
		})
	}
}

func TestHTTPEscapesHeaders(t *testing.T) {
	t.Parallel()
	value := "a\r\nX-Admin: 1"
	r := capture(t, hooks.Message{
		CorrelationID: "x\ny", ContentType: "text/plain\r\nX-Admin: 1", MessageID: " 100% é ", Body: []byte("body"),
		Headers: map[string]any{"note": value, "b\r\nX-Admin: 1": "v"},
	}, nil)
	if _, forged := r.Header["X-Admin"]; forged || r.body != "body" {
		t.Errorf("a header was forged or the body changed: %v %q", r.Header, r.body)
	}
	if ct, ok := r.Header["Content-Type"]; ok {
		t.Errorf("Content-Type %q was sent", ct)
	}
	for name, want := range map[string]string{
		"RSCTL-Header-Note": value, "RSCTL-Correlation-Id": "x\ny", "RSCTL-Message-Id": " 100% é ", "RSCTL-Content-Type": "text/plain\r\nX-Admin: 1",
	} {
		if got, err := url.PathUnescape(r.Header.Get(name)); err != nil || got != want {
			t.Errorf("%s: %q decodes to %q, want %q", name, r.Header.Get(name), got, want)
		}
	}
	wantHeaders(t, r, map[string]string{"RSCTL-Header-B%0d%0ax-Admin%3a%201": "v"})
}

func TestHTTPOmitsLargeHeaders(t *testing.T) {
	t.Parallel()
	headers := map[string]any{"trace": strings.Repeat("x", 131_000), "A": "first", "a": "second"}
	for i := range 200 {
		headers[fmt.Sprintf("many-%03d", i)] = strings.Repeat("v", 100)
	}
	o, log := hooktest.Logged()
	size := make(chan int, 1)
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		sum := 0
		for name, values := range r.Header {
			sum += len(name) + len(values[0]) + 4
		}
		size <- sum
		for name, want := range map[string]string{"RSCTL-Header-A": "first", "RSCTL-Header-Many-000": strings.Repeat("v", 100)} {
			if got := r.Header.Values(name); len(got) != 1 || got[0] != want {
				t.Errorf("%s: %q, want %q", name, got, want)
			}
		}
		if r.Header.Get("RSCTL-Headers-Omitted") == "" {
			t.Error("RSCTL-Headers-Omitted is missing")
		}
	})
	m := hooks.Message{Headers: headers}
	hooktest.Handle(t, newHook(t, httpHandler(s.URL), o), m)
	if n := <-size; n > 12<<10 {
		t.Errorf("%d bytes of headers were sent", n)
	}
	if !strings.Contains(log.String(), "headers left out") {
		t.Errorf("log = %s, want a warning", log)
	}
	r := capture(t, hooks.Message{Headers: map[string]any{"trace": headers["trace"]}}, nil)
	wantHeaders(t, r, map[string]string{"RSCTL-Header-Trace-Omitted": "131000", "RSCTL-Headers-Omitted": "1"})
}

func TestHTTPOwnHeaders(t *testing.T) {
	t.Parallel()
	r := capture(t, hooks.Message{Body: []byte("x")}, func(h *spec.Handler) {
		h.URL.Value = strings.Replace(h.URL.Value, "http://", "http://user:p%40ss@", 1)
		h.Headers = []spec.EnvVar{
			{Name: "X-Token", Value: spec.Text{Value: "hush", Source: "${T}"}},
			{Name: "host", Value: spec.Text{Value: "orders.internal"}},
			{Name: "Content-Type", Value: spec.Text{Value: "application/x-order"}},
			{Name: "User-Agent", Value: spec.Text{Value: "shop/1"}},
		}
	})
	wantHeaders(t, r, map[string]string{
		"X-Token": "hush", "Content-Type": "application/x-order", "User-Agent": "shop/1",
		"Authorization": "Basic " + base64.StdEncoding.EncodeToString([]byte("user:p@ss")),
	})
	if r.Host != "orders.internal" {
		t.Errorf("Host = %q", r.Host)
	}
	own := capture(t, hooks.Message{ContentType: "text/plain"}, func(h *spec.Handler) {
		h.Headers = []spec.EnvVar{{Name: "Content-Type", Value: spec.Text{Value: "application/x-order"}}}
	})
	wantHeaders(t, own, map[string]string{"Content-Type": "text/plain"})
}

// The same for an endpoint; many servers see HTTP_RSCTL_HEADER_BIG_OMITTED.
func TestHTTPHeaderMarksCannotBeForged(t *testing.T) {
	t.Parallel()
	big := strings.Repeat("x", maxHTTPValue+1)
	r := capture(t, hooks.Message{Headers: map[string]any{
		"big": big, "Big-Omitted": "forged", "big_omitted": "forged", "here": "1", "HERE-OMITTED": "forged", "s-omitted": "forged",
	}}, nil)
	wantHeaders(t, r, map[string]string{
		"RSCTL-Header-Big-Omitted": strconv.Itoa(len(big)), "RSCTL-Header-Here": "1",
		"RSCTL-Header-Big-Omitted-Omitted": "6", "RSCTL-Headers-Omitted": "5",
	})
	for name, values := range r.Header {
		if len(values) != 1 || values[0] == "forged" {
			t.Errorf("%s: %.40q", name, values)
		}
	}
	if r.Header.Get("RSCTL-Header-Here-Omitted") != "" {
		t.Error("a header that is there is marked as omitted")
	}
}
