package runtime

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rsctl/rsctl/pkg/runtime/internal/breaker"
)

func TestChangeLogCountsPausesThatFollowEachOther(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		log, lines := bufferedLog()
		l := changeLog{log: log}
		opened := breaker.Change{State: breaker.Open, Err: errors.New("too many open files")}
		stays := breaker.Change{State: breaker.Open, Still: true, Err: opened.Err}
		closed := breaker.Change{State: breaker.Closed}
		expect := func(when string, paused, still, again int) {
			t.Helper()
			for text, want := range map[string]int{"queue paused, no attempt is spent": paused, "still unavailable": still, "available again": again} {
				if n := strings.Count(lines.String(), text); n != want {
					t.Errorf("%s: %d lines say %q, want %d", when, n, text, want)
				}
			}
		}
		for range 100 {
			l.tell(opened)
			l.tell(closed)
		}
		expect("after 100 pauses in a moment", 1, 0, 1)
		l.tell(opened)
		l.tell(stays)
		expect("when one of them lasts", 2, 0, 1)
		l.tell(stays)
		l.tell(closed)
		expect("when that ends", 2, 1, 2)
		if !lines.has("not_logged=99") {
			t.Error("no line counts the pauses that were not logged")
		}
		time.Sleep(pauseLoggedEvery)
		l.tell(opened)
		l.tell(closed)
		expect("later", 3, 1, 3)
	})
}
