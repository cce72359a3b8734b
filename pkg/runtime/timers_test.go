package runtime

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rsctl/rsctl/pkg/confirm"
	"github.com/rsctl/rsctl/pkg/runtime/memory"
)

// stubSender is a publisher without a broker; answer decides about each copy.
type stubSender struct {
	mu     sync.Mutex
	sent   []string // "exchange/key id" of every try
	at     []time.Time
	answer func(o *outgoing) error
}

func (s *stubSender) publish(_ context.Context, o *outgoing) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sent = append(s.sent, fmt.Sprintf("%s/%s %s", o.Exchange, o.Key, o.Publishing.MessageId))
	s.at = append(s.at, time.Now())
	if s.answer == nil {
		return nil
	}
	return s.answer(o)
}

func (s *stubSender) fits(*outgoing, int) error { return nil }

func (s *stubSender) seen() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.sent)
}

func (s *syncBuffer) count(text string) int { return strings.Count(s.String(), text) }

func heldFor(d time.Duration, id string) held {
	return held{due: time.Now().Add(d), out: &outgoing{Message: confirm.Message{Key: "q", Publishing: amqp.Publishing{MessageId: id}}}}
}

// runningTimers runs timers over s until the returned function is called.
func runningTimers(t *testing.T, s sender) (tm *timers, log *syncBuffer, end func()) {
	t.Helper()
	logger, log := bufferedLog()
	tm = newTimers(s, make(chan struct{}, maxHeld), logger)
	ctx, cancel := context.WithCancel(t.Context())
	var loop sync.WaitGroup
	loop.Go(func() { tm.run(ctx) })
	return tm, log, func() { cancel(); loop.Wait() }
}

func (t *timers) hold(h held) {
	t.room <- struct{}{}
	t.add(h)
}

func TestHeldCopiesArePublishedWhenTheyAreDue(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &stubSender{}
		tm, log, end := runningTimers(t, s)
		began := time.Now()
		tm.hold(heldFor(3*time.Second, "c"))
		tm.hold(heldFor(time.Second, "a"))
		tm.hold(heldFor(2*time.Second, "b"))
		tm.hold(heldFor(-time.Second, "overdue"))
		tm.finish(t.Context())
		if want := []string{"/q overdue", "/q a", "/q b", "/q c"}; !slices.Equal(s.seen(), want) {
			t.Errorf("published %q, want %q", s.seen(), want)
		}
		for i, at := range s.at {
			if took := at.Sub(began); took != time.Duration(i)*time.Second {
				t.Errorf("copy %d was published after %v", i, took)
			}
		}
		end()
		if n := tm.count(); n != 0 || log.has("lost") {
			t.Errorf("%d copies are held at the end; log: %s", n, log)
		}
	})
}

func TestAHeldCopyIsTriedUntilItArrives(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &stubSender{}
		s.answer = func(*outgoing) error {
			if len(s.sent) < 5 {
				return confirm.ErrNacked
			}
			return nil
		}
		tm, log, end := runningTimers(t, s)
		defer end()
		tm.hold(heldFor(0, "m"))
		tm.finish(t.Context())
		if n := len(s.seen()); n != 5 {
			t.Errorf("tried %d times, want 5", n)
		}
		for i := 1; i < len(s.at); i++ {
			most := heldRetryMin << (i - 1)
			if pause := s.at[i].Sub(s.at[i-1]); pause < most/2 || pause > most {
				t.Errorf("pause %d was %v, want %v to %v", i, pause, most/2, most)
			}
		}
		if !log.has("held copy not delivered; trying again") {
			t.Errorf("the log does not say so: %s", log)
		}
	})
}

func TestRoomForHeldCopiesIsBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		tm, _, end := runningTimers(t, &stubSender{})
		defer end()
		for range maxHeld {
			if _, ok := tm.reserve(t.Context(), t.Context(), 0); !ok {
				t.Fatal("no room below the bound")
			}
		}
		given := make(chan bool)
		go func() { _, ok := tm.reserve(t.Context(), t.Context(), 0); given <- ok }()
		synctest.Wait()
		select {
		case <-given:
			t.Fatal("room was given above the bound")
		default:
		}
		tm.release(memory.Share{})
		if !<-given {
			t.Error("the room given back was not given on")
		}
		over, cancel := context.WithCancel(t.Context())
		cancel()
		_, first := tm.reserve(over, t.Context(), 0)
		if _, second := tm.reserve(t.Context(), over, 0); first || second {
			t.Error("room was given when nobody waits for it any more")
		}
	})
}

func TestAShutdownPublishesHeldCopiesEarly(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &stubSender{}
		tm, log, end := runningTimers(t, s)
		began := time.Now()
		const n = 3 * maxReleasing
		for i := range n {
			tm.hold(heldFor(time.Duration(i+1)*time.Hour, fmt.Sprint(i)))
		}
		work, kill := context.WithCancel(t.Context())
		kill()
		tm.finish(work)
		if took := time.Since(began); len(s.seen()) != n || took > 0 {
			t.Errorf("%d of %d copies were published, after %v", len(s.seen()), n, took)
		}
		end()
		if log.has("lost;") || !log.has("better early than lost") {
			t.Errorf("log: %s", log)
		}
	})
}

func TestAShutdownGivesUpOnABrokerThatTakesNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &stubSender{answer: func(*outgoing) error { return errors.New("no") }}
		tm, log, end := runningTimers(t, s)
		began := time.Now()
		tm.hold(heldFor(time.Hour, "a"))
		tm.hold(heldFor(time.Hour, "b"))
		work, kill := context.WithCancel(t.Context())
		kill()
		tm.finish(work)
		if took := time.Since(began); took != finishTimeout {
			t.Errorf("gave up after %v, want %v", took, finishTimeout)
		}
		end()
		if !log.has("they are lost\" count=2") {
			t.Errorf("the log does not count what is lost: %s", log)
		}
	})
}

func TestAShutdownDoesNotWaitForTheNextTry(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &stubSender{}
		began := time.Now()
		s.answer = func(*outgoing) error {
			if time.Since(began) < time.Minute {
				return confirm.ErrReturned
			}
			return nil
		}
		tm, log, end := runningTimers(t, s)
		tm.hold(heldFor(0, "m"))
		time.Sleep(time.Minute) // by now a pause takes up to half a minute
		stopping := time.Now()
		work, kill := context.WithCancel(t.Context())
		kill()
		tm.finish(work)
		if took := time.Since(stopping); took != 0 {
			t.Errorf("published %v after the stop", took)
		}
		end()
		if tm.count() != 0 || log.has("lost;") {
			t.Errorf("%d copies were left: %s", tm.count(), log)
		}
	})
}
