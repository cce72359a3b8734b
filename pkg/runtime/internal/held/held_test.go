package held

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rsctl/rsctl/pkg/runtime/memory"
)

var errFull = errors.New("the queue is full")

// sender notes what is published; answer decides about each try.
type sender struct {
	mu     sync.Mutex
	sent   []string
	at     []time.Time
	answer func() error
}

func (s *sender) publish(_ context.Context, id string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sent, s.at = append(s.sent, id), append(s.at, time.Now())
	if s.answer == nil {
		return nil
	}
	return s.answer()
}

func (s *sender) seen() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.sent)
}

// lines is a log.
type lines struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func (l *lines) has(text string) bool { return strings.Contains(l.String(), text) }

// runningTimers runs timers over s until the returned function is called.
func runningTimers(t *testing.T, s *sender) (tm *Timers[string], log *lines, end func()) {
	t.Helper()
	log = &lines{}
	tm = New(Config[string]{
		Publish:  s.publish,
		Name:     func(id string) (string, string) { return "q", id },
		Added:    func() {},
		Released: func() {},
		Room:     NewRoom(),
		Log:      slog.New(slog.NewTextHandler(log, nil)),
	})
	ctx, cancel := context.WithCancel(t.Context())
	var loop sync.WaitGroup
	loop.Go(func() { tm.Run(ctx) })
	return tm, log, func() { cancel(); loop.Wait() }
}

// hold adds a copy that is due after d.
func hold(t *testing.T, tm *Timers[string], d time.Duration, id string) {
	t.Helper()
	share, ok := tm.Reserve(t.Context(), t.Context(), 0)
	if !ok {
		t.Fatal("no room")
	}
	tm.Add(time.Now().Add(d), id, share)
}

func TestTimersPublishCopiesWhenTheyAreDue(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &sender{}
		tm, log, end := runningTimers(t, s)
		began := time.Now()
		hold(t, tm, 3*time.Second, "c")
		hold(t, tm, time.Second, "a")
		hold(t, tm, 2*time.Second, "b")
		hold(t, tm, -time.Second, "overdue")
		tm.Finish(t.Context())
		if want := []string{"overdue", "a", "b", "c"}; !slices.Equal(s.seen(), want) {
			t.Errorf("published %q, want %q", s.seen(), want)
		}
		for i, at := range s.at {
			if took := at.Sub(began); took != time.Duration(i)*time.Second {
				t.Errorf("copy %d was published after %v", i, took)
			}
		}
		end()
		if n := tm.Count(); n != 0 || log.has("lost") {
			t.Errorf("%d copies are held at the end; log: %s", n, log)
		}
	})
}

func TestTimersTryACopyUntilItArrives(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &sender{}
		s.answer = func() error {
			if len(s.sent) < 5 {
				return errFull
			}
			return nil
		}
		tm, log, end := runningTimers(t, s)
		defer end()
		hold(t, tm, 0, "m")
		tm.Finish(t.Context())
		if n := len(s.seen()); n != 5 {
			t.Errorf("tried %d times, want 5", n)
		}
		for i := 1; i < len(s.at); i++ {
			longest := retryMin << (i - 1)
			if pause := s.at[i].Sub(s.at[i-1]); pause < longest/2 || pause > longest {
				t.Errorf("pause %d was %v, want %v to %v", i, pause, longest/2, longest)
			}
		}
		if !log.has("held copy not delivered; trying again") {
			t.Errorf("the log does not say so: %s", log)
		}
	})
}

func TestTimersHaveRoomForSoManyCopies(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		tm, _, end := runningTimers(t, &sender{})
		defer end()
		for range most {
			if _, ok := tm.Reserve(t.Context(), t.Context(), 0); !ok {
				t.Fatal("no room below the bound")
			}
		}
		given := make(chan bool)
		go func() { _, ok := tm.Reserve(t.Context(), t.Context(), 0); given <- ok }()
		synctest.Wait()
		select {
		case <-given:
			t.Fatal("room was given above the bound")
		default:
		}
		tm.Release(memory.Share{})
		if !<-given {
			t.Error("the room given back was not given on")
		}
		over, cancel := context.WithCancel(t.Context())
		cancel()
		_, first := tm.Reserve(over, t.Context(), 0)
		if _, second := tm.Reserve(t.Context(), over, 0); first || second {
			t.Error("room was given when nobody waits for it any more")
		}
	})
}

func TestTimersPublishEarlyAtAShutdown(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &sender{}
		tm, log, end := runningTimers(t, s)
		began := time.Now()
		const n = 3 * MaxReleasing
		for i := range n {
			hold(t, tm, time.Duration(i+1)*time.Hour, fmt.Sprint(i))
		}
		work, kill := context.WithCancel(t.Context())
		kill()
		tm.Finish(work)
		if took := time.Since(began); len(s.seen()) != n || took > 0 {
			t.Errorf("%d of %d copies were published, after %v", len(s.seen()), n, took)
		}
		end()
		if log.has("lost;") || !log.has("better early than lost") {
			t.Errorf("log: %s", log)
		}
	})
}

func TestTimersGiveUpOnABrokerThatTakesNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &sender{answer: func() error { return errors.New("no") }}
		tm, log, end := runningTimers(t, s)
		began := time.Now()
		hold(t, tm, time.Hour, "a")
		hold(t, tm, time.Hour, "b")
		work, kill := context.WithCancel(t.Context())
		kill()
		tm.Finish(work)
		if took := time.Since(began); took != finishTimeout {
			t.Errorf("gave up after %v, want %v", took, finishTimeout)
		}
		end()
		if !log.has("they are lost\" count=2") {
			t.Errorf("the log does not count what is lost: %s", log)
		}
	})
}

func TestTimersDoNotWaitForTheNextTryAtAShutdown(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &sender{}
		began := time.Now()
		s.answer = func() error {
			if time.Since(began) < time.Minute {
				return errFull
			}
			return nil
		}
		tm, log, end := runningTimers(t, s)
		hold(t, tm, 0, "m")
		time.Sleep(time.Minute) // by now a pause takes up to half a minute
		stopping := time.Now()
		work, kill := context.WithCancel(t.Context())
		kill()
		tm.Finish(work)
		if took := time.Since(stopping); took != 0 {
			t.Errorf("published %v after the stop", took)
		}
		end()
		if tm.Count() != 0 || log.has("lost;") {
			t.Errorf("%d copies were left: %s", tm.Count(), log)
		}
	})
}

// Held copies keep their bodies in memory, for hours perhaps: what does not fit
// under the ceiling waits unsettled, until one that is held has gone.
func TestTimersBoundTheBodiesOfHeldCopies(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		log := &lines{}
		bodies := memory.NewBodies(1000, slog.New(slog.NewTextHandler(log, nil)))
		tm, _, end := runningTimers(t, &sender{})
		defer end()
		tm.cfg.Memory = bodies.Held()
		hold := func(size int, d time.Duration) {
			share, ok := tm.Reserve(t.Context(), t.Context(), size)
			if !ok {
				t.Fatal("no room")
			}
			tm.Add(time.Now().Add(d), "m", share)
		}
		began := time.Now()
		hold(900, time.Hour)
		hold(5000, time.Minute) // the one above the ceiling
		hold(100, time.Hour)
		if time.Since(began) != 0 {
			t.Error("what fits has waited")
		}
		hold(300, time.Second)
		if waited := time.Since(began); waited != time.Minute {
			t.Errorf("waited %v, want until the large copy has gone after %v", waited, time.Minute)
		}
		time.Sleep(2 * time.Hour)
		if use := bodies.Use(); use.Held != 0 || use.Waits != 1 || len(tm.cfg.Room) != 0 || strings.Count(log.String(), "reach max_in_memory") != 1 {
			t.Errorf("%+v in use, room for %d taken", use, len(tm.cfg.Room))
		}
	})
}
