package http

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/rsctl/rsctl/pkg/hooks"
	"github.com/rsctl/rsctl/pkg/hooks/internal/hooktest"
	"github.com/rsctl/rsctl/pkg/hooks/setup"
)

// Whatever keeps a connection from being made is not the message's fault.
func TestHTTPThatCannotConnectIsUnavailable(t *testing.T) {
	t.Parallel()
	for want, cause := range map[string]error{
		"too many open files: raise ulimit -n":        os.NewSyscallError("socket", syscall.EMFILE),
		"too many open files in system: too many for": os.NewSyscallError("socket", syscall.ENFILE),
		"cannot assign requested address: no local":   os.NewSyscallError("connect", syscall.EADDRNOTAVAIL),
		"no buffer space available":                   os.NewSyscallError("connect", syscall.ENOBUFS),
		"cannot allocate memory":                      os.NewSyscallError("socket", syscall.ENOMEM),
		"no route to host":                            os.NewSyscallError("connect", syscall.EHOSTUNREACH),
		"network is unreachable":                      os.NewSyscallError("connect", syscall.ENETUNREACH),
		"operation not permitted: this machine":       os.NewSyscallError("connect", syscall.EPERM),
		"permission denied: this machine":             os.NewSyscallError("connect", syscall.EACCES),
		"connection reset by peer":                    os.NewSyscallError("connect", syscall.ECONNRESET),
		"connection timed out":                        os.NewSyscallError("connect", syscall.ETIMEDOUT),
		"resource temporarily unavailable":            os.NewSyscallError("connect", syscall.EAGAIN),
		"cannot resolve the host's name":              &net.DNSError{Err: "server misbehaving", Name: "hook.test", IsTemporary: true},
		"something new":                               errors.New("something new"),
	} {
		if cause, ok := cause.(*os.SyscallError); ok {
			cause.Err = fmt.Errorf("%w", cause.Err) // however it is wrapped
		}
		t.Run(want, func(t *testing.T) {
			t.Parallel()
			overEveryWay(t, func(t *testing.T, w way) {
				e := w.endpoint(t, newAuthority(t), func(context.Context, string, string) (net.Conn, error) {
					return nil, &net.OpError{Op: "dial", Net: "tcp", Err: cause}
				})
				_, err := e.Handle(t.Context(), w.message())
				hooktest.WantUnavailable(t, "Handle()", err, []string{"POST http", want})
				_, err = e.HandleBatch(t.Context(), []hooks.Message{w.message(), w.message()})
				hooktest.WantUnavailable(t, "HandleBatch()", err, []string{"POST http", want})
			})
		})
	}
}

// An endpoint that ends the connection before TLS is up has seen no request.
func TestHTTPWhoseHandshakeIsCutIsUnavailable(t *testing.T) {
	t.Parallel()
	addr := acceptEach(t, func(c net.Conn) {
		c.Read(make([]byte, 1024)) // the client's hello
	})
	_, err := newHook(t, httpHandler("https://"+addr+"/"), setup.Options{}).Handle(hooktest.Deadline(t, hooktest.Patience), hooks.Message{Body: []byte("x")})
	hooktest.WantUnavailable(t, "Handle()", err, []string{"closed the connection instead of securing it"})
}

// acceptEach serves every connection by f, which it closes afterwards.
func acceptEach(t testing.TB, f func(c net.Conn)) (addr string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var conns sync.WaitGroup
	conns.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			conns.Go(func() { defer c.Close(); f(c) })
		}
	})
	t.Cleanup(func() { l.Close(); conns.Wait() })
	return l.Addr().String()
}

// crowdedURL makes a re-executed test binary post 80 messages to a URL, 40 at a
// time, with next to no file descriptors.
const crowdedURL = "RSCTL_TEST_CROWDED_URL"

func postCrowded() error {
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &syscall.Rlimit{Cur: 24, Max: 24}); err != nil {
		return err
	}
	hook, err := New(httpHandler(os.Getenv(crowdedURL)), setup.Options{Concurrency: 40})
	if err != nil {
		return err
	}
	var left, refused atomic.Int32
	left.Store(80)
	var calls sync.WaitGroup
	failed := make(chan error, 40)
	for range 40 {
		calls.Go(func() {
			for left.Load() > 0 || refused.Load() == 0 {
				switch o, err := hook.Handle(context.Background(), hooks.Message{Body: []byte("x")}); {
				case errors.Is(err, hooks.ErrUnavailable) && strings.Contains(err.Error(), "raise ulimit -n"):
					refused.Add(1)
					time.Sleep(time.Millisecond)
				case err != nil || o.Verdict != hooks.Ack:
					failed <- fmt.Errorf("got %+v, %w, want Ack", o, err)
					return
				default:
					left.Add(-1)
				}
			}
		})
	}
	calls.Wait()
	close(failed)
	return <-failed
}

func TestHTTPWithoutDescriptorsFailsNoMessage(t *testing.T) {
	t.Parallel()
	s := serve(t, func(http.ResponseWriter, *http.Request) { time.Sleep(50 * time.Millisecond) })
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), crowdedURL+"="+s.URL, "HTTP_PROXY=", "http_proxy=")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}
