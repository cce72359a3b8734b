package runtime

import (
	"context"
	"errors"
	"time"

	"github.com/rsctl/rsctl/pkg/runtime/internal/breaker"
)

// answerWithin is how long the broker may take to answer about one queue. It asks
// the node that holds the queue, or most nodes of a quorum queue, and while those
// are down it says nothing, for more than a minute or for ever.
const answerWithin = 15 * time.Second

var errNoAnswer = errors.New("no answer from the broker")

// ask waits for the answer to a question that the client library cannot give up.
// It returns early with errNoAnswer when the broker takes too long, with
// breaker.ErrStopped when stop is closed, and with its cause when the session ends. The
// question then goes on, and ends with the session at the latest.
func ask[T any](s *session, stop <-chan struct{}, question func() (T, error)) (T, error) {
	type answer struct {
		value T
		err   error
	}
	answers := make(chan answer, 1)
	s.background(func() {
		value, err := question()
		answers <- answer{value, err}
	})
	var none T
	late := time.NewTimer(s.answerTimeout)
	defer late.Stop()
	select {
	case a := <-answers:
		return a.value, a.err
	case <-late.C:
		return none, errNoAnswer
	case <-stop:
		return none, breaker.ErrStopped
	case <-s.ctx.Done():
		return none, context.Cause(s.ctx)
	}
}

// background runs f, which ends with the connection at the latest, in the background.
// Nothing runs once the session is over.
func (s *session) background(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.over {
		s.running.Go(f)
	}
}

// finish waits for the running; the connection is closed.
func (s *session) finish() {
	s.mu.Lock()
	s.over = true
	s.mu.Unlock()
	s.running.Wait()
}
