package http

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/rsctl/rsctl/pkg/hooks"
	"github.com/rsctl/rsctl/pkg/hooks/internal/hooktest"
	"github.com/rsctl/rsctl/pkg/hooks/setup"
)

// scripted is an endpoint that answers the first request with whatever a test
// gives it, and every other one with 503.
type scripted struct {
	mu     sync.Mutex
	answer []byte
}

func (s *scripted) set(answer []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answer = answer
}

// take returns the answer to a request, once.
func (s *scripted) take() []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	answer := s.answer
	s.answer = []byte("HTTP/1.1 503 Not Now\r\nContent-Length: 0\r\n\r\n")
	return answer
}

func (s *scripted) serve(c net.Conn) {
	in := bufio.NewReader(c)
	for {
		req, err := http.ReadRequest(in)
		if err != nil {
			return
		}
		io.Copy(io.Discard, req.Body)
		if _, err := c.Write(s.take()); err != nil {
			return
		}
	}
}

// Whatever an endpoint answers, our client acks nothing that net/http would not,
// and the next message gets its own answer over either.
func FuzzHTTPAnswers(f *testing.F) {
	for _, answer := range []string{
		"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
		"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
		"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 200 OK\r\n\r\n",
		"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nok\n",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n2\r\nok\r\n0\r\n\r\nHTTP/1.1 200 OK\r\n\r\n",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2;x=y\r\nok\r\n0\r\nTrailer: a\r\n\r\n",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
		"HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\nhello",
		"HTTP/1.1 304 Not Modified\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
		"HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
		"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\nHTTP/1.1 200 OK\r\n\r\n",
		"HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 0\r\n\r\n",
		"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n", "HTTP/0.9 200 OK\r\n\r\n", "hello\r\n\r\n", "\r\n", "",
		"HTTP/1.1 200 OK\nContent-Length : 0\n\n", "HTTP/1.1 200 OK\r\nRSCTL-Outcome: drop\r\nContent-Length: 0\r\n\r\n",
	} {
		f.Add([]byte(answer))
	}
	var s scripted
	url := "http://" + acceptEach(f, s.serve) + "/"
	f.Fuzz(func(t *testing.T, answer []byte) {
		if len(answer) > 32<<10 { // what arrives at once
			return
		}
		acks := func(plain bool) (ack, over bool) {
			e := newHook(t, httpHandler(url), setup.Options{}).(*endpoint)
			defer e.Close()
			if !plain {
				e.plain = nil
			}
			s.set(answer)
			ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
			defer cancel()
			first, err := e.Handle(ctx, hooks.Message{Body: []byte("x")})
			over = ctx.Err() != nil || errors.Is(err, hooks.ErrUnavailable) // a busy machine may not even connect in time
			if err != nil && !over {
				t.Fatalf("over plainhttp %t: %v", plain, err)
			}
			s.take() // when a new connection was needed that never came
			if next, err := e.Handle(hooktest.Deadline(t, hooktest.Patience), hooks.Message{Body: []byte("x")}); err != nil || next.Verdict == hooks.Ack || next.Verdict == hooks.Drop {
				t.Errorf("over plainhttp %t, after %q (%+v): the next message got %+v, %v, want the answer to it", plain, answer, first, next, err)
			}
			return first.Verdict == hooks.Ack, over
		}
		ours, late := acks(true)
		theirs, later := acks(false)
		if ours != theirs && !late && !later {
			t.Errorf("%q acks: over plainhttp %t, over net/http %t", answer, ours, theirs)
		}
	})
}
