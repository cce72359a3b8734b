package otlp

import (
	"compress/gzip"
	"context"
	"encoding/pem"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/protobuf/proto"

	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// setenv sets variables of the standard, by what follows OTEL_EXPORTER_OTLP_, and
// hides those of who runs the tests.
func setenv(t *testing.T, values map[string]string) {
	t.Helper()
	for _, v := range os.Environ() {
		if name, _, _ := strings.Cut(v, "="); strings.HasPrefix(name, "OTEL_") {
			t.Setenv(name, "")
		}
	}
	for name, value := range values {
		t.Setenv("OTEL_EXPORTER_OTLP_"+name, value)
	}
}

func TestSettings_Endpoint(t *testing.T) {
	for _, tt := range []struct {
		name string
		env  map[string]string
		want string
	}{
		{"nothing is said", nil, "http://localhost:4318/v1/traces"},
		{"one for everything gets the path", map[string]string{"ENDPOINT": "https://c.example"}, "https://c.example/v1/traces"},
		{"one with a path keeps it", map[string]string{"ENDPOINT": "http://c.example:1/otel/"}, "http://c.example:1/otel/v1/traces"},
		{"one for traces stands as it is", map[string]string{"TRACES_ENDPOINT": "http://c.example/in", "ENDPOINT": "http://other.example"}, "http://c.example/in"},
		{"one for traces without a path", map[string]string{"TRACES_ENDPOINT": "http://c.example"}, "http://c.example/"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			setenv(t, tt.env)
			if s, err := fromEnvironment(); err != nil || s.url != tt.want {
				t.Errorf("got %q, %v, want %q", s.url, err, tt.want)
			}
		})
	}
}

func TestSettings_WhatCannotBeUsedIsNamedAndNotShown(t *testing.T) {
	for _, tt := range []struct{ name, value, want string }{
		{"PROTOCOL", "grpc", "rsctl knows http/protobuf alone: set it to that, and the endpoint to the collector's port for HTTP, commonly 4318"},
		{"PROTOCOL", "http/json", "rsctl knows http/protobuf alone"},
		{"ENDPOINT", "hush:4318", "OTEL_EXPORTER_OTLP_ENDPOINT is not an http:// or https:// URL"},
		{"TRACES_ENDPOINT", "ftp://hush/", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT is not"},
		{"HEADERS", "hush", "OTEL_EXPORTER_OTLP_HEADERS is not a list"},
		{"HEADERS", "a=%zzhush", "OTEL_EXPORTER_OTLP_HEADERS is not a list"},
		{"TIMEOUT", "10s", "OTEL_EXPORTER_OTLP_TIMEOUT is not a number of milliseconds"},
		{"COMPRESSION", "zip", "neither gzip nor none"},
		{"CERTIFICATE", "/nowhere.pem", "OTEL_EXPORTER_OTLP_CERTIFICATE"},
		{"CLIENT_CERTIFICATE", "/nowhere.pem", "OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE"},
	} {
		t.Run(tt.name+" "+tt.value, func(t *testing.T) {
			setenv(t, map[string]string{tt.name: tt.value})
			_, err := NewClient()
			if err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "hush") {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
}

var spans = []*tracepb.ResourceSpans{{SchemaUrl: "of a test"}}

// upload sends spans to a collector as the environment says.
func upload(t *testing.T, env map[string]string) error {
	t.Helper()
	setenv(t, env)
	c, err := NewClient()
	if err != nil {
		t.Fatal(err)
	}
	defer c.Stop(context.Background())
	return c.UploadTraces(t.Context(), spans)
}

func TestClient_PostsWhatTheSettingsSay(t *testing.T) {
	for _, compression := range []string{"none", "gzip"} {
		t.Run(compression, func(t *testing.T) {
			var got tracepb.TracesData
			var header http.Header
			collector := httptest.NewTLSServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				header = r.Header
				var in io.Reader = r.Body
				if r.Header.Get("Content-Encoding") == "gzip" {
					in, _ = gzip.NewReader(r.Body)
				}
				body, err := io.ReadAll(in)
				if err == nil {
					err = proto.Unmarshal(body, &got)
				}
				if err != nil || r.Method != http.MethodPost || r.URL.Path != "/v1/traces" {
					t.Errorf("%s %s: %v", r.Method, r.URL, err)
				}
			}))
			defer collector.Close()
			authority := filepath.Join(t.TempDir(), "ca.pem")
			if err := os.WriteFile(authority, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: collector.Certificate().Raw}), 0o600); err != nil {
				t.Fatal(err)
			}
			err := upload(t, map[string]string{
				"ENDPOINT": collector.URL, "CERTIFICATE": authority, "COMPRESSION": compression, "HEADERS": "api-key=a%20b, other=c",
			})
			if err != nil || len(got.ResourceSpans) != 1 || !proto.Equal(got.ResourceSpans[0], spans[0]) {
				t.Errorf("%v; the collector got %v", err, &got)
			}
			if header.Get("Api-Key") != "a b" || header.Get("Other") != "c" || header.Get("Content-Type") != "application/x-protobuf" {
				t.Errorf("headers %v", header)
			}
		})
	}
}

func TestClient_SaysWhatACollectorRefuses(t *testing.T) {
	var posts, elsewhere atomic.Int32
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { elsewhere.Add(1) }))
	defer other.Close()
	collector := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		posts.Add(1)
		if r.URL.Path == "/moved" {
			http.Redirect(w, r, other.URL, http.StatusTemporaryRedirect)
			return
		}
		http.Error(w, "no such tenant", http.StatusForbidden)
	}))
	defer collector.Close()
	err := upload(t, map[string]string{"ENDPOINT": collector.URL, "HEADERS": "api-key=hush"})
	if err == nil || err.Error() != "the collector answered 403 Forbidden: no such tenant" {
		t.Errorf("got %v", err)
	}
	err = upload(t, map[string]string{"TRACES_ENDPOINT": collector.URL + "/moved", "HEADERS": "api-key=hush"})
	if err == nil || !strings.Contains(err.Error(), "307") || elsewhere.Load() != 0 || posts.Load() != 2 {
		t.Errorf("got %v; %d posts, of which %d followed a redirect", err, posts.Load(), elsewhere.Load())
	}
}

// answers is a transport that gives one answer after the other, the last one for
// ever.
type answers struct {
	statuses []string // and what Retry-After says
	at       []time.Duration
	start    time.Time
}

func (a *answers) RoundTrip(r *http.Request) (*http.Response, error) {
	io.Copy(io.Discard, r.Body)
	status, after, _ := strings.Cut(a.statuses[min(len(a.at), len(a.statuses)-1)], " ")
	a.at = append(a.at, time.Since(a.start))
	code := map[string]int{"200": 200, "503": 503, "429": 429}[status]
	return &http.Response{StatusCode: code, Status: status, Header: http.Header{"Retry-After": {after}}, Body: http.NoBody}, nil
}

func TestClient_SendsAgainWhatACollectorCannotTakeNow(t *testing.T) {
	for _, tt := range []struct {
		name     string
		statuses []string
		want     []time.Duration
		fails    bool
	}{
		{"pauses double", []string{"503", "503", "200"}, []time.Duration{0, time.Second, 3 * time.Second}, false},
		{"Retry-After is honoured", []string{"429 5", "200"}, []time.Duration{0, 5 * time.Second}, false},
		{"until the timeout", []string{"503"}, []time.Duration{0, time.Second, 3 * time.Second, 7 * time.Second}, true},
		{"not for hours", []string{"429 999999999"}, []time.Duration{0}, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a := &answers{statuses: tt.statuses, start: time.Now()}
				c := newClient(settings{url: "http://c.example/", header: http.Header{}, timeout: defaultTimeout}, a)
				defer c.Stop(t.Context())
				err := c.UploadTraces(t.Context(), spans)
				if (err != nil) != tt.fails || len(a.at) != len(tt.want) {
					t.Fatalf("got %v after posts at %v", err, a.at)
				}
				for i := range a.at {
					if a.at[i] != tt.want[i] {
						t.Errorf("posts at %v, want %v", a.at, tt.want)
					}
				}
				if took := time.Since(a.start); took > defaultTimeout {
					t.Errorf("the export took %v", took)
				}
			})
		})
	}
}

func TestClient_StopEndsAnExport(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newClient(settings{url: "http://c.example/", header: http.Header{}, timeout: defaultTimeout}, &answers{statuses: []string{"503"}})
		start := time.Now()
		time.AfterFunc(2*time.Second, func() { c.Stop(context.Background()) })
		if err := c.UploadTraces(t.Context(), spans); err == nil || time.Since(start) != 2*time.Second {
			t.Errorf("got %v after %v", err, time.Since(start))
		}
	})
}
