package breaker

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

var errGone = errors.New("no such file")

// watched is a breaker and the changes that it has told of.
func watched(s Settings) (*Breaker, *[]Change) {
	var changes []Change
	s.Changed = func(c Change) { changes = append(changes, c) }
	return New(s), &changes
}

func enter(t *testing.T, b *Breaker) Token {
	t.Helper()
	token, err := b.Enter(t.Context(), t.Context(), time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	return token
}

func TestBreakerCallsThatWereRunningWhenItOpenedEndNoProbe(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b, changes := watched(Settings{})
		early, slow := enter(t, b), enter(t, b)
		b.Unavailable(early, errGone)
		probe := enter(t, b)
		b.Unavailable(slow, errGone)
		b.Leave(slow)
		second := make(chan Token)
		go func() {
			token, _ := b.Enter(t.Context(), t.Context(), time.Time{})
			second <- token
		}()
		select {
		case <-second:
			t.Fatal("a second caller tries while the first does")
		case <-time.After(2 * ProbeMax):
		}
		b.Leave(probe)
		if got := <-second; got == 0 || got == probe {
			t.Errorf("the next token is %d, after %d", got, probe)
		}
		if n := len(*changes); n != 1 {
			t.Errorf("%d changes were told, want that it opened", n)
		}
	})
}

func TestBreakerCallsThatWereRunningDoNotProlongAPause(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b, _ := watched(Settings{Failures: 1, Cooldown: time.Minute})
		started := time.Now()
		b.Failed(0, "")
		time.Sleep(30 * time.Second)
		b.Failed(0, "")
		token, err := b.Enter(t.Context(), t.Context(), started)
		if err != nil || token == 0 {
			t.Fatalf("Enter() = %v, %v; want a try", token, err)
		}
		if took := time.Since(started); took != time.Minute {
			t.Errorf("the try came after %v, want a minute", took)
		}
	})
}

func TestBreakerTellsOfEachChange(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b, changes := watched(Settings{Failures: 2, Cooldown: time.Minute})
		b.Failed(enter(t, b), "boom")
		b.Failed(enter(t, b), "boom")
		b.Failed(enter(t, b), "boom")
		b.Succeeded(enter(t, b))
		want := []Change{
			{State: Open, Fails: true, For: time.Minute},
			{State: Open, Still: true, Fails: true, For: time.Minute},
			{State: Closed, For: 2 * time.Minute},
		}
		if len(*changes) != len(want) {
			t.Fatalf("told %+v", *changes)
		}
		for i, got := range *changes {
			if (got.Err == nil) != (want[i].State == Closed) {
				t.Errorf("change %d: error %v", i, got.Err)
			}
			got.Err = nil
			if got != want[i] {
				t.Errorf("change %d is %+v, want %+v", i, got, want[i])
			}
		}
	})
}

func TestBreakerKeepsNoCallerForTooLong(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b, _ := watched(Settings{Failures: 1, Cooldown: time.Hour, Limits: Limits{Waiting: time.Minute, Probing: 2 * time.Minute}})
		b.Failed(0, "")
		opened := time.Now()
		kept := make(chan time.Duration)
		for range 2 {
			go func() {
				if _, err := b.Enter(t.Context(), t.Context(), opened); !errors.Is(err, ErrPaused) {
					t.Errorf("Enter() = %v, want %v", err, ErrPaused)
				}
				kept <- time.Since(opened)
			}()
		}
		if got := <-kept; got != time.Minute {
			t.Errorf("one that waits was kept for %v, want a minute", got)
		}
		if got := <-kept; got != 2*time.Minute {
			t.Errorf("the one that may try was kept for %v, want two minutes", got)
		}
	})
}

func TestBreakerTriesAgainBeforeTheTroubleHasDoubled(t *testing.T) {
	t.Parallel()
	for trouble := ProbeMin; trouble < 2*time.Minute; trouble = trouble * 3 / 2 {
		synctest.Test(t, func(t *testing.T) {
			b, _ := watched(Settings{})
			began := time.Now()
			b.Unavailable(enter(t, b), errGone)
			for tries := 1; ; tries++ {
				token := enter(t, b)
				away := time.Since(began)
				if away < trouble {
					b.Unavailable(token, errGone)
					continue
				}
				b.Succeeded(token)
				if away > min(2*trouble, trouble+ProbeMax) {
					t.Errorf("the try that ends %v of trouble comes after %v", trouble, away)
				}
				if tries > 30 {
					t.Errorf("%d tries within %v of trouble", tries, trouble)
				}
				return
			}
		})
	}
}
