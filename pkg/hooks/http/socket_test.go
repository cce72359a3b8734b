package http

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/rsctl/rsctl/pkg/hooks"
	"github.com/rsctl/rsctl/pkg/hooks/http/internal/exchange"
	"github.com/rsctl/rsctl/pkg/hooks/setup"
	"github.com/rsctl/rsctl/pkg/spec"
)

// shortDir is a folder whose path leaves room for a socket's name.
func shortDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "rsctl")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// listenUnix serves f on a socket and returns its path.
func listenUnix(t *testing.T, f http.HandlerFunc) string {
	t.Helper()
	path := filepath.Join(shortDir(t), "app.sock")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewUnstartedServer(f)
	s.Listener.Close()
	s.Listener = l
	s.Start()
	t.Cleanup(s.Close)
	return path
}

func socketHandler(socket, path string) *spec.Handler {
	return httpHandler(spec.SocketScheme + url.PathEscape(socket) + path)
}

func TestSocket_TakesRequests(t *testing.T) {
	t.Parallel()
	type request struct{ uri, host, body string }
	got := make(chan request, 10)
	socket := listenUnix(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got <- request{r.RequestURI, r.Host, fmt.Sprint(len(body))}
		w.Header().Set("RSCTL-Outcome", "retry_after 2s")
	})
	for _, size := range []int{0, 3, exchange.MaxSmallBody + 1} { // the last takes the other way of sending
		hook := newHook(t, socketHandler(socket, "/hook?a=b"), setup.Options{})
		if err := hook.(hooks.Checker).Check(t.Context()); err != nil {
			t.Errorf("Check() = %v", err)
		}
		o, err := hook.Handle(t.Context(), hooks.Message{Body: make([]byte, size)})
		if err != nil || o.Verdict != hooks.RetryAfter || o.Delay != 2*time.Second {
			t.Errorf("%d bytes: %+v, %v", size, o, err)
		}
		if r, want := <-got, (request{"/hook?a=b", "localhost", fmt.Sprint(size)}); r != want {
			t.Errorf("got %+v, want %+v", r, want)
		}
	}
}

func TestSocket_WithoutAServerIsUnavailable(t *testing.T) {
	t.Parallel()
	dir := shortDir(t)
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	dead := filepath.Join(dir, "dead.sock")
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: dead, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	l.SetUnlinkOnClose(false)
	l.Close()
	for _, tt := range []struct {
		name, path string
		checked    bool // Check sees it as well
	}{
		{"no such file", filepath.Join(dir, "gone.sock"), true},
		{"a file that is no socket", file, true},
		{"a socket that nobody listens on", dead, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			hook := newHook(t, socketHandler(tt.path, "/"), setup.Options{})
			for _, size := range []int{1, exchange.MaxSmallBody + 1} {
				if o, err := hook.Handle(t.Context(), hooks.Message{Body: make([]byte, size)}); !errors.Is(err, hooks.ErrUnavailable) {
					t.Errorf("Handle() = %+v, %v; want unavailable", o, err)
				}
			}
			if err := hook.(hooks.Checker).Check(t.Context()); errors.Is(err, hooks.ErrUnavailable) != tt.checked {
				t.Errorf("Check() = %v", err)
			}
		})
	}
}
