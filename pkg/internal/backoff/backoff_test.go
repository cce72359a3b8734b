package backoff

import (
	"testing"
	"time"
)

func TestBackoffDoublesUpToItsLongestPauseAndBeginsAnew(t *testing.T) {
	t.Parallel()
	b := New(time.Second, 4*time.Second)
	for i, step := range []time.Duration{1, 2, 4, 4, 4} {
		step *= time.Second
		if again := b.Again(); again < step/2 || again > step || b.Step() != step {
			t.Errorf("pause %d again is %v of a step of %v, want half of %v to all of it", i, again, b.Step(), step)
		}
		if d := b.Next(); d < step/2 || d > step {
			t.Errorf("pause %d is %v, want half of %v to all of it", i, d, step)
		}
	}
	b.Reset()
	if d := b.Next(); d > time.Second {
		t.Errorf("the first pause after Reset is %v", d)
	}
}
