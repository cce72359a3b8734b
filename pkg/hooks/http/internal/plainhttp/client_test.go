package plainhttp

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rsctl/rsctl/pkg/hooks/http/internal/exchange"
)

// patience bounds a call that ends by itself, on however busy a machine.
const patience = 3 * time.Minute

// listen serves each connection by f, which is told its number from 1 on, and
// returns a client that posts there.
func listen(t *testing.T, f func(c net.Conn, in *bufio.Reader, number int32)) *Client {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var number atomic.Int32
	var conns sync.WaitGroup
	conns.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			n := number.Add(1)
			conns.Go(func() { defer c.Close(); f(c, bufio.NewReader(c), n) })
		}
	})
	client := New(func(ctx context.Context) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "tcp", l.Addr().String())
	}, "/hook", "hook.test", 4)
	t.Cleanup(func() { client.Close(); l.Close(); conns.Wait() })
	return client
}

// post returns the status of the answer to a request with this body, or what went
// wrong.
func post(t *testing.T, c *Client, body string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	a, err := c.Post(ctx, &exchange.Request{Body: []byte(body)})
	if err != nil {
		return err.Error()
	}
	defer a.Close()
	io.Copy(io.Discard, a.Body)
	return a.Status
}

// take reads a request, and reports whether there is one.
func take(in *bufio.Reader) bool {
	req, err := http.ReadRequest(in)
	if err != nil {
		return false
	}
	io.Copy(io.Discard, req.Body)
	return true
}

func say(c net.Conn, status string) {
	io.WriteString(c, "HTTP/1.1 "+status+"\r\nContent-Length: 0\r\n\r\n")
}

// Whatever a server adds to an answer, the next request gets its own: the server
// says 200 unasked, and 503 to every request but the first.
func TestClient_AnswerToAnotherRequestIsNone(t *testing.T) {
	t.Parallel()
	const unasked = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"
	for name, first := range map[string]string{
		"two answers at once":                    "HTTP/1.1 202 First\r\nContent-Length: 0\r\n\r\n" + unasked,
		"an answer behind one without a body":    "HTTP/1.1 204 First\r\n\r\n" + unasked,
		"an answer in a body that may not be":    "HTTP/1.1 204 First\r\nContent-Length: 38\r\n\r\n" + unasked,
		"an answer behind a chunked one":         "HTTP/1.1 202 First\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + unasked,
		"an answer behind one that is said last": "HTTP/1.1 202 First\r\nConnection: close\r\nContent-Length: 0\r\n\r\n" + unasked,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := listen(t, func(c net.Conn, in *bufio.Reader, number int32) {
				for n := 1; take(in); n++ {
					if number == 1 && n == 1 {
						io.WriteString(c, first)
						continue
					}
					say(c, "503 Not Now")
				}
			})
			if got := post(t, c, "x"); !strings.HasSuffix(got, " First") {
				t.Fatalf("the first request got %q", got)
			}
			for range 3 {
				if got := post(t, c, "x"); got != "503 Not Now" {
					t.Errorf("a later request got %q, want its own answer", got)
				}
			}
		})
	}
}

func TestClient_AnswerThatComesWhileIdleIsNone(t *testing.T) {
	t.Parallel()
	said := make(chan struct{})
	c := listen(t, func(c net.Conn, in *bufio.Reader, number int32) {
		for n := 1; take(in); n++ {
			say(c, "503 Not Now")
			if number == 1 && n == 1 {
				<-said
				say(c, "200 Unasked")
				said <- struct{}{}
			}
		}
	})
	if got := post(t, c, "x"); got != "503 Not Now" {
		t.Fatalf("the first request got %q", got)
	}
	said <- struct{}{} // the connection is idle
	<-said
	for range 3 {
		if got := post(t, c, "x"); got != "503 Not Now" {
			t.Errorf("a later request got %q, want its own answer", got)
		}
	}
}

func TestClient_AnswerBeforeTheFirstRequestIsNone(t *testing.T) {
	t.Parallel()
	c := listen(t, func(c net.Conn, in *bufio.Reader, _ int32) {
		say(c, "200 Unasked")
		take(in)
	})
	dial := c.dial
	c.dial = func(ctx context.Context) (net.Conn, error) {
		raw, err := dial(ctx)
		for err == nil && ctx.Err() == nil && !newConn(raw).spoken() {
			time.Sleep(time.Millisecond)
		}
		return raw, err
	}
	if got := post(t, c, "x"); got != exchange.ErrUnasked.Error() {
		t.Errorf("got %q, want that the server speaks before it is asked", got)
	}
}
