package runtime

import (
	"sync"
	"time"

	"github.com/rsctl/rsctl/pkg/internal/backoff"
)

const (
	paceMin = time.Second
	paceMax = 30 * time.Second
)

// pace spaces out what fails again and again, however many deliveries fail at
// the same time.
type pace struct {
	mu    sync.Mutex
	wait  *backoff.Backoff
	grown time.Time // when the step last grew
}

func newPace() *pace { return &pace{wait: backoff.New(paceMin, paceMax)} }

// delay is how long to wait before the next try. Failures that come together
// count as one.
func (p *pace) delay() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	if now.Sub(p.grown) < p.wait.Step() {
		return p.wait.Again()
	}
	p.grown = now
	return p.wait.Next()
}

func (p *pace) reset() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.wait.Reset()
}
