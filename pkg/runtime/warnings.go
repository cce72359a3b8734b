package runtime

import (
	"log/slog"
	"sync"
	"time"

	"github.com/rsctl/rsctl/pkg/runtime/internal/logkey"
)

// warnEvery is how often one warning of a queue is logged at most.
const warnEvery = time.Minute

// warnings keeps a queue's warnings from filling the log.
type warnings struct {
	log *slog.Logger

	mu         sync.Mutex
	last       map[string]time.Time
	suppressed map[string]int
}

func newWarnings(log *slog.Logger) *warnings {
	return &warnings{log: log, last: map[string]time.Time{}, suppressed: map[string]int{}}
}

// rarely logs text at most once in warnEvery, with how many were left out.
func (w *warnings) rarely(text string, attrs ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := time.Now()
	if last, seen := w.last[text]; seen && now.Sub(last) < warnEvery {
		w.suppressed[text]++
		return
	}
	if n := w.suppressed[text]; n > 0 {
		attrs = append(attrs, logkey.NotLogged, n)
	}
	w.last[text], w.suppressed[text] = now, 0
	w.log.Warn(text, attrs...)
}

// once logs text once in the run, with the first problem met.
func (w *warnings) once(text, problem string, attrs ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, seen := w.last[text]; seen {
		return
	}
	w.last[text] = time.Now()
	w.log.Warn(text, append(attrs, logkey.Reason, problem)...)
}
