package broker_test

import (
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rsctl/rsctl/pkg/spec"
	"github.com/rsctl/rsctl/pkg/topology/broker"
)

func at(u string) spec.Broker { return spec.Broker{URL: spec.Text{Value: u}} }

// change returns the broker's URL with another user or vhost.
func (b *bundle) change(edit func(*url.URL)) spec.Broker {
	b.t.Helper()
	u, err := url.Parse(b.broker.URL.Value)
	if err != nil {
		b.t.Fatal(err)
	}
	edit(u)
	return at(u.String())
}

func TestDialNamesWhatWillNotChangeByTryingAgain(t *testing.T) {
	t.Parallel()
	b := setup(t)
	_, stranger := b.limited(".*", ".*", ".*")
	elsewhere := setup(t)
	tests := []struct {
		name   string
		broker spec.Broker
		code   int
		want   string
	}{
		{"a wrong password", b.change(func(u *url.URL) { u.User = url.UserPassword("guest", "s3cret") }), 403, `login refused for user "guest"`},
		{"a missing vhost", b.change(func(u *url.URL) { u.Path = "/nope" }), 530, `vhost "nope" does not exist`},
		{"a vhost without permissions", at(strings.Replace(stranger.URL.Value, b.vhost, elsewhere.vhost, 1)), 530, `has no permissions in vhost "` + elsewhere.vhost + `"`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := broker.Dial(soon(t), tt.broker, "test")
			refusal := wantRefusal(t, err, tt.want)
			if refusal.Code != tt.code || refusal.Hint == "" {
				t.Errorf("code %d, hint %q; want %d and a hint", refusal.Code, refusal.Hint, tt.code)
			}
		})
	}
}

// wantRefusal also asserts that the text is one line without a password.
func wantRefusal(t *testing.T, err error, text string) *broker.Refusal {
	t.Helper()
	var refusal *broker.Refusal
	if !errors.As(err, &refusal) {
		t.Fatalf("%v is no Refusal", err)
	}
	whole := err.Error() + refusal.Hint
	if !strings.Contains(whole, text) || strings.Contains(whole, "s3cret") || strings.Contains(whole, "\n") {
		t.Errorf("%q with hint %q; want %q, on one line, without the password", err, refusal.Hint, text)
	}
	return refusal
}

func TestDialNamesTheConnectionAndTheServer(t *testing.T) {
	t.Parallel()
	b := setup(t)
	conn, err := broker.Dial(t.Context(), b.broker, "consume")
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if got := conn.Config.Properties["connection_name"]; got != "rsctl-test/consume" {
		t.Errorf("connection_name is %v", got)
	}
	if conn.IsRecoveryEnabled() {
		t.Error("the client library reconnects by itself")
	}
	if srv := broker.Server(conn); !srv.Known() {
		t.Errorf("server version is %q", srv.Version)
	}
}

func TestDialTakesTheHeartbeatFromTheURL(t *testing.T) {
	t.Parallel()
	b := setup(t)
	conn, err := broker.Dial(t.Context(), b.change(func(u *url.URL) { u.RawQuery = "heartbeat=7" }), "test")
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if got := conn.Config.Heartbeat; got != 7*time.Second {
		t.Errorf("heartbeat is %v", got)
	}
}

func TestDialRefusesURLsWithoutRepeatingThem(t *testing.T) {
	t.Parallel()
	for _, bad := range []string{
		"", "localhost", "http://user:s3cret@host", "amqp://user:s3cret@ho st", "amqp://user:s3cret@host:port/",
		"amqp://user:s3cret/x@host/vhost", "amqp://user:1/s3cret@host/vhost", "amqp://user:s3cret%zz@host", "amqp://user:pw@host/?heartbeat=s3cret",
	} {
		_, err := broker.Dial(t.Context(), at(bad), "test")
		wantRefusal(t, err, "broker.url is not a valid AMQP URL")
	}
}

func TestDialTellsWhatMayPassFromWhatWillNot(t *testing.T) {
	t.Parallel()
	closed := closedPort(t)
	quiet := listen(t, func(c net.Conn) { _, _ = c.Read(make([]byte, 64)); <-t.Context().Done() })
	hangsUp := listen(t, func(c net.Conn) { _, _ = c.Read(make([]byte, 8)) })
	for name, tt := range map[string]struct{ url, want string }{
		"a refused connection":         {"amqp://user:s3cret@" + closed, "connection refused"},
		"a silent server":              {"amqp://user:s3cret@" + quiet.Addr().String() + "/?connection_timeout=100", "no answer in time"},
		"a server that closes at once": {"amqp://user:s3cret@" + hangsUp.Addr().String(), "connect to"},
		"a host that does not exist":   {"amqp://user:s3cret@host.invalid", "host.invalid"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := broker.Dial(soon(t), at(tt.url), "test")
			var refusal *broker.Refusal
			if err == nil || errors.As(err, &refusal) || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "s3cret") {
				t.Errorf("%v; want %q, worth another try, without the password", err, tt.want)
			}
		})
	}
}

func TestDialEndsWithItsContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	quiet := listen(t, func(c net.Conn) {
		_, _ = c.Read(make([]byte, 8))
		cancel() // while the client waits for the handshake
		<-t.Context().Done()
	})
	if _, err := broker.Dial(ctx, at("amqp://"+quiet.Addr().String()), "test"); !errors.Is(err, context.Canceled) {
		t.Errorf("Dial() = %v, want the context's error", err)
	}
}

// closedPort is an address where nobody listens, nor can before the test ends:
// the port is taken.
func closedPort(t *testing.T) string {
	t.Helper()
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Close(fd) })
	if err := syscall.Bind(fd, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		t.Fatal(err)
	}
	addr, err := syscall.Getsockname(fd)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("127.0.0.1:%d", addr.(*syscall.SockaddrInet4).Port)
}

// listen serves every connection with serve until the test ends.
func listen(t *testing.T, serve func(net.Conn)) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				serve(c)
			}()
		}
	}()
	return l
}

func TestDialTLS(t *testing.T) {
	t.Parallel()
	server := httptest.NewUnstartedServer(http.NotFoundHandler())
	server.Config.ErrorLog = log.New(io.Discard, "", 0) // refused handshakes
	server.StartTLS()
	t.Cleanup(server.Close)
	address := "amqps://user:s3cret@" + server.Listener.Addr().String() + "/"
	plain := listen(t, func(c net.Conn) { _, _ = c.Write([]byte("HTTP/1.1 400 Bad Request\r\n\r\n")) })
	dir := t.TempDir()
	file := func(name string, content []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	ca := file("ca.pem", pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}))
	noPEM := file("no.pem", []byte("hello"))
	tests := []struct {
		name string
		url  string
		tls  *spec.TLS
		want string
	}{
		{"an unknown authority", address, nil, "does not verify"},
		{"another name", address, &spec.TLS{CAFile: ca, ServerName: "mq.internal"}, "does not verify"},
		{"a plain port", "amqps://user:s3cret@" + plain.Addr().String(), &spec.TLS{CAFile: ca}, "does not speak TLS"},
		{"a missing CA file", address, &spec.TLS{CAFile: filepath.Join(dir, "none.pem")}, "broker.tls.ca_file"},
		{"a CA file without a certificate", address, &spec.TLS{CAFile: noPEM}, "no certificate in"},
		{"a client certificate that is none", address, &spec.TLS{CertFile: noPEM, KeyFile: noPEM}, "broker.tls.cert_file"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			b := at(tt.url)
			b.TLS = tt.tls
			_, err := broker.Dial(soon(t), b, "test")
			wantRefusal(t, err, tt.want)
		})
	}
	t.Run("a trusted server is talked to", func(t *testing.T) {
		t.Parallel()
		b := at(address + "?connection_timeout=2000") // an HTTP server waits for more
		b.TLS = &spec.TLS{CAFile: ca}
		_, err := broker.Dial(soon(t), b, "test")
		var refusal *broker.Refusal
		if err == nil || errors.As(err, &refusal) {
			t.Errorf("%v; want a failed AMQP handshake: the other side speaks HTTP", err)
		}
	})
}
