package broker_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rsctl/rsctl/pkg/spec"
	"github.com/rsctl/rsctl/pkg/topology/broker"
)

// anyOf is a broker with several addresses.
func anyOf(urls ...string) spec.Broker {
	b := spec.Broker{}
	for _, u := range urls {
		b.URLs = append(b.URLs, spec.Text{Value: u, Source: "test"})
	}
	b.URL = b.URLs[0]
	return b
}

// withHost returns the broker's URL by way of another address.
func (b *bundle) withHost(hostport string) string {
	return b.change(func(u *url.URL) { u.Host = hostport }).URL.Value
}

func TestAnAddressThatHangsIsGivenUp(t *testing.T) {
	t.Parallel()
	b := setup(t)
	quiet := listen(t, func(c net.Conn) { _, _ = c.Read(make([]byte, 64)); <-t.Context().Done() })
	hangsUp := listen(t, func(c net.Conn) { _, _ = c.Read(make([]byte, 8)) })
	for name, bad := range map[string]string{
		"hangs":             quiet.Addr().String(),
		"nobody listens":    closedPort(t),
		"closes at once":    hangsUp.Addr().String(),
		"a host of no name": "host.invalid:5672",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for range 4 { // either may be tried first
				conn, err := broker.Dial(t.Context(), anyOf(b.withHost(bad), b.broker.URL.Value), "test")
				if err != nil {
					t.Fatal(err)
				}
				_ = conn.Close()
			}
		})
	}
}

func TestTheAddressesAreTriedInRandomOrder(t *testing.T) {
	t.Parallel()
	b := setup(t)
	var mu sync.Mutex
	tried := map[string]int{}
	relay := func() string {
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = ln.Close() })
		address := ln.Addr().String()
		go func() {
			for {
				c, err := ln.Accept()
				if err != nil {
					return
				}
				mu.Lock()
				tried[address]++
				mu.Unlock()
				_ = c.Close()
			}
		}()
		return address
	}
	first, second := relay(), relay()
	for range 40 {
		conn, err := broker.Dial(t.Context(), anyOf(b.withHost(first), b.withHost(second), b.broker.URL.Value), "test")
		if err != nil {
			t.Fatal(err)
		}
		_ = conn.Close()
	}
	mu.Lock()
	defer mu.Unlock()
	// Each is tried before the broker in half of all cases.
	if tried[first] == 0 || tried[second] == 0 || tried[first] == 40 || tried[second] == 40 {
		t.Errorf("in 40 connections they were tried %d and %d times", tried[first], tried[second])
	}
}

func TestASlowBrokerIsWaitedForWhenNoOtherAnswers(t *testing.T) {
	t.Parallel()
	b := setup(t)
	u, err := url.Parse(b.broker.URL.Value)
	if err != nil {
		t.Fatal(err)
	}
	slow := listen(t, func(c net.Conn) {
		time.Sleep(1500 * time.Millisecond) // longer than one of several may be silent
		up, err := net.Dial("tcp", u.Host)
		if err != nil {
			return
		}
		defer up.Close()
		go func() { _, _ = io.Copy(up, c) }()
		_, _ = io.Copy(c, up)
	})
	conn, err := broker.Dial(t.Context(), anyOf(b.withHost(slow.Addr().String()), b.withHost(closedPort(t))), "test")
	if err != nil {
		t.Fatal(err)
	}
	_ = conn.Close()
}

func TestWhenNoAddressTakesTheConnectionEachIsNamed(t *testing.T) {
	t.Parallel()
	b := setup(t)
	wrong := b.change(func(u *url.URL) { u.User = url.UserPassword("guest", "s3cret") }).URL.Value
	closed := closedPort(t)
	var refusal *broker.Refusal
	_, err := broker.Dial(soon(t), anyOf(b.withHost(closed), wrong), "test")
	if err == nil || errors.As(err, &refusal) || !broker.LoginRefused(err) ||
		!strings.Contains(err.Error(), closed) || !strings.Contains(err.Error(), "login refused") || strings.Contains(err.Error(), "s3cret") {
		t.Errorf("one down, one that refuses: %v", err)
	}
	_, err = broker.Dial(soon(t), anyOf(wrong, wrong), "test")
	if !errors.As(err, &refusal) || !broker.LoginRefused(err) {
		t.Errorf("both refuse: %v", err)
	}
	_, err = broker.Dial(soon(t), anyOf(b.withHost(closed), b.withHost(closed)), "test")
	if err == nil || errors.As(err, &refusal) || broker.LoginRefused(err) {
		t.Errorf("both down: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err = broker.Dial(ctx, anyOf(wrong, wrong), "test"); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

func TestAPasswordThatIsReplacedNeedsNoRestart(t *testing.T) {
	t.Parallel()
	b := setup(t)
	user, as := b.limited(".*", ".*", ".*")
	written := strings.Replace(as.URL.Value, "s3cret", "${file:password}", 1)
	dir := t.TempDir()
	write := func(password string) {
		if err := os.WriteFile(filepath.Join(dir, "password"), []byte(password+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("s3cret")
	for name, text := range map[string]string{"url": "url: '" + written + "'", "urls": "urls: ['" + written + "', '" + written + "']"} {
		s, problems := spec.Parse([]byte("version: 1\nbroker: {"+text+"}\nqueues: [{name: q, type: classic}]\n"),
			spec.Options{Dir: dir, ReadFile: os.ReadFile})
		if s == nil {
			t.Fatal(problems)
		}
		dial := func() error {
			conn, err := broker.Dial(t.Context(), s.Broker, "test")
			if err == nil {
				_ = conn.Close()
			}
			if err != nil && (strings.Contains(err.Error(), "s3cret") || strings.Contains(err.Error(), "n3w0")) {
				t.Errorf("%s: a password in %q", name, err)
			}
			return err
		}
		if err := dial(); err != nil {
			t.Errorf("%s: at first: %v", name, err)
		}
		b.api(http.MethodPut, "users/"+user, map[string]string{"password": "n3w0/s3cret", "tags": ""})
		if err := dial(); !broker.LoginRefused(err) {
			t.Errorf("%s: replaced on the broker: %v", name, err)
		}
		if err := os.Remove(filepath.Join(dir, "password")); err != nil {
			t.Fatal(err)
		}
		var refusal *broker.Refusal
		if err := dial(); err == nil || errors.As(err, &refusal) || !strings.Contains(err.Error(), `"password"`) {
			t.Errorf("%s: without the file: %v; want an error that may pass and names it", name, err)
		}
		write("n3w0/s3cret")
		if err := dial(); err == nil {
			t.Errorf("%s: a password with a / that is not encoded was taken", name)
		}
		write("n3w0%2Fs3cret")
		if err := dial(); err != nil {
			t.Errorf("%s: replaced in the file: %v", name, err)
		}
		b.api(http.MethodPut, "users/"+user, map[string]string{"password": "s3cret", "tags": ""})
		write("s3cret")
	}
}
