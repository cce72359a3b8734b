package http

import (
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/rsctl/rsctl/pkg/hooks"
	"github.com/rsctl/rsctl/pkg/hooks/internal/hooktest"
	"github.com/rsctl/rsctl/pkg/hooks/setup"
	"github.com/rsctl/rsctl/pkg/spec"
)

// viaProxy is a hook for target that goes through the proxy at addr.
func viaProxy(t *testing.T, target, addr string) *endpoint {
	t.Helper()
	e := newHook(t, httpHandler(target), setup.Options{}).(*endpoint)
	e.plain = nil
	e.proxy = http.ProxyURL(&url.URL{Scheme: "http", Host: addr, User: url.UserPassword("jo", "hush")})
	return e
}

func wantProxyTrouble(t *testing.T, e *endpoint, parts ...string) {
	t.Helper()
	_, err := e.Handle(hooktest.Deadline(t, hooktest.Patience), hooks.Message{Body: []byte("x")})
	hooktest.WantUnavailable(t, "Handle()", err, parts)
	if err != nil && strings.Contains(err.Error(), "hush") {
		t.Errorf("%v shows the password of the proxy", err)
	}
	_, err = e.HandleBatch(hooktest.Deadline(t, hooktest.Patience), []hooks.Message{{Body: []byte("x")}})
	hooktest.WantUnavailable(t, "HandleBatch()", err, parts)
}

// A proxy that does not open the way to the endpoint is no answer of the endpoint.
func TestProxy_ThatRefusesToConnectIsUnavailable(t *testing.T) {
	t.Parallel()
	for _, status := range []string{"201 Created", "302 Found", "400 Bad", "403 Forbidden", "407 Proxy Authentication Required", "429 Too Many Requests", "502 Bad Gateway", "503 Busy\x1b", "504 Gateway Timeout"} {
		t.Run(status, func(t *testing.T) {
			t.Parallel()
			proxy := strings.TrimSuffix(strings.TrimPrefix(serveRaw(t, "HTTP/1.1 "+status+"\r\nContent-Length: 0\r\n\r\n"), "http://"), "/")
			wantProxyTrouble(t, viaProxy(t, "https://shop.invalid/x", proxy),
				"POST https://shop.invalid/x: proxy "+proxy+": answered HTTP "+status[:3], "to CONNECT")
		})
	}
	t.Run("a proxy that closes the connection", func(t *testing.T) {
		t.Parallel()
		proxy := acceptEach(t, func(c net.Conn) { c.Read(make([]byte, 1024)) })
		wantProxyTrouble(t, viaProxy(t, "https://shop.invalid/x", proxy), "proxy "+proxy+": closed the connection")
	})
	t.Run("a proxy that is not there", func(t *testing.T) {
		t.Parallel()
		proxy := closedPort(t)
		for _, target := range []string{"https://shop.invalid/x", "http://shop.invalid/x"} {
			wantProxyTrouble(t, viaProxy(t, target, proxy), "proxy "+proxy+": connection refused")
		}
	})
	t.Run("a proxy that talks no HTTP", func(t *testing.T) {
		t.Parallel()
		proxy := acceptEach(t, func(c net.Conn) { c.Read(make([]byte, 1024)); io.WriteString(c, "go away\r\n\r\n") })
		wantProxyTrouble(t, viaProxy(t, "https://shop.invalid/x", proxy), "proxy "+proxy+": ", "malformed HTTP")
	})
}

// Behind a proxy that does connect, the endpoint speaks for itself.
func TestProxy_EndpointBehindItSpeaksForItself(t *testing.T) {
	t.Parallel()
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) }))
	t.Cleanup(s.Close)
	proxy := acceptEach(t, func(c net.Conn) {
		c.Read(make([]byte, 1024))
		to, err := net.Dial("tcp", s.Listener.Addr().String())
		if err != nil {
			return
		}
		defer to.Close()
		io.WriteString(c, "HTTP/1.1 200 Connection established\r\n\r\n")
		go io.Copy(to, c)
		io.Copy(c, to)
	})
	wantProxyTrouble(t, viaProxy(t, "https://shop.invalid/x", proxy), "not shop.invalid", "(through the proxy "+proxy+")")
	e := viaProxy(t, "https://shop.invalid/x", proxy)
	through := e.proxy
	e.connect(&tls.Config{InsecureSkipVerify: true})
	e.plain, e.proxy = nil, through
	if o := hooktest.Handle(t, e, hooks.Message{Body: []byte("x")}); o.Verdict != hooks.Retry || o.Reason != "HTTP 502 Bad Gateway" {
		t.Errorf("got %+v, want Retry: the endpoint said so", o)
	}
}

// Over plain HTTP the proxy's answers look like the endpoint's.
func TestProxy_SaysWhatOnlyItCan(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		answer string
		why    string // "": read as the endpoint's answer
	}{
		{"407 Proxy Authentication Required\r\nProxy-Authenticate: Basic", "HTTP 407 Proxy Authentication Required"},
		{"502 Bad Gateway\r\nProxy-Status: squid.example; error=connection_refused; next-hop=\"shop.invalid\"", "(connection_refused)"},
		{"504 Gateway Timeout\r\nProxy-Status: inner;received-status=504, outer;error=connection_timeout", "(connection_timeout)"},
		{"503 Unavailable\r\nX-Squid-Error: ERR_CONNECT_FAIL 111", "(ERR_CONNECT_FAIL)"},
		{"403 Forbidden\r\nX-Squid-Error: ERR_ACCESS_DENIED 0", "(ERR_ACCESS_DENIED)"},
		{"502 Bad Gateway", ""},
		{"502 Bad Gateway\r\nProxy-Status: squid.example; error=connection_terminated", ""},
		{"502 Bad Gateway\r\nX-Squid-Error: ERR_READ_ERROR 104", ""},
		{"407 Odd\r\nRSCTL-Outcome: retry", ""},
		{"503 Unavailable\r\nVia: 1.1 proxy", ""},
	} {
		t.Run(tt.answer, func(t *testing.T) {
			t.Parallel()
			url := serveRaw(t, "HTTP/1.1 "+tt.answer+"\r\nContent-Length: 0\r\n\r\n")
			proxy := strings.TrimSuffix(strings.TrimPrefix(url, "http://"), "/")
			e := viaProxy(t, "http://shop.invalid/x", proxy)
			if tt.why != "" {
				wantProxyTrouble(t, e, "proxy "+proxy+": answered HTTP ", "in the endpoint's place", tt.why)
			} else if o := hooktest.Handle(t, e, hooks.Message{Body: []byte("x")}); o.Verdict != hooks.Retry {
				t.Errorf("got %+v, want Retry", o)
			}
			if o := handle(t, httpHandler(url), hooks.Message{Body: []byte("x")}); o.Verdict != hooks.Retry {
				t.Errorf("without a proxy: got %+v, want Retry", o)
			}
		})
	}
	t.Run("statuses decides", func(t *testing.T) {
		t.Parallel()
		proxy := strings.TrimPrefix(serveRaw(t, "HTTP/1.1 407 No\r\nContent-Length: 0\r\n\r\n"), "http://")
		e := viaProxy(t, "http://shop.invalid/x", strings.TrimSuffix(proxy, "/"))
		e.h.Statuses = []spec.CodeRule{{From: 407, To: 407, Outcome: spec.Outcome{Kind: "retry_after", Delay: time.Minute}}}
		if o := hooktest.Handle(t, e, hooks.Message{}); o.Verdict != hooks.RetryAfter {
			t.Errorf("got %s, want RetryAfter", fmt.Sprint(o))
		}
	})
}
