package runtime

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/rsctl/rsctl/pkg/runtime/memory"
)

// Held copies keep their bodies in memory, for hours perhaps: what does not fit
// under the ceiling waits unsettled, until one that is held has gone.
func TestTheBodiesOfHeldCopiesAreBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		tm, log, end := runningTimers(t, &stubSender{})
		defer end()
		bodies := memory.NewBodies(1000, tm.log)
		tm.mem = bodies.Held()
		hold := func(size int, d time.Duration) {
			share, ok := tm.reserve(t.Context(), t.Context(), size)
			if !ok {
				t.Fatal("no room")
			}
			h := heldFor(d, "m")
			h.share = share
			tm.add(h)
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
		if use := bodies.Use(); use.Held != 0 || use.Waits != 1 || len(tm.room) != 0 || log.count("reach max_in_memory") != 1 {
			t.Errorf("%+v in use, room for %d taken", use, len(tm.room))
		}
	})
}
