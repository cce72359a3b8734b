package runtime

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestFailuresThatComeTogetherArePacedAsOne(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newPace()
		within := func(what string, got, most time.Duration) {
			t.Helper()
			if got < most/2 || got > most {
				t.Errorf("%s: %v, want %v to %v", what, got, most/2, most)
			}
		}
		within("the first", p.delay(), paceMin)
		for range 50 {
			within("one that fails with it", p.delay(), 2*paceMin)
		}
		time.Sleep(2 * paceMin)
		within("the second round", p.delay(), 2*paceMin)
		within("the same round", p.delay(), 4*paceMin)
		for range 20 {
			time.Sleep(paceMax)
			p.delay()
		}
		within("after many", p.delay(), paceMax)
		p.reset()
		within("after a success", p.delay(), paceMin)
	})
}
