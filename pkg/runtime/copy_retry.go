package runtime

import (
	"time"

	"github.com/rsctl/rsctl/pkg/internal/backoff"
	"github.com/rsctl/rsctl/pkg/runtime/internal/breaker"
	"github.com/rsctl/rsctl/pkg/runtime/internal/logkey"
)

const (
	// parkedFor is how long a message stays unsettled that has nowhere to go, well
	// within the server's consumer timeout of 30 minutes.
	parkedFor = 20 * time.Minute
	// maxParked bounds how many of them a queue keeps; each may need a channel.
	maxParked = 100
	// parkedBeyond paces what comes beyond.
	parkedBeyond = 30 * time.Second
)

// again waits before the next try. It reports false when the delivery can be kept
// no longer: the process stops, its channel is lost, or the server's consumer
// timeout is near.
func (s *settlement) again(target string, err error) bool {
	if s.d.sub.err() != nil || s.st.stopping() {
		return false
	}
	if s.since.IsZero() {
		s.since = time.Now()
		s.stall.begin(err)
	}
	pause := s.pace.delay()
	s.log.Error("copy not delivered; the message is kept and the copy tried again, not the handler", logkey.Target, target,
		logkey.MessageID, s.d.MessageId, logkey.Attempt, s.d.reading.Attempt, logkey.Error, err, logkey.RetryIn, pause.Round(time.Millisecond))
	if time.Since(s.since)+pause > s.stall.limits.Probing {
		if !s.from.rest(s.st, s.d.sub, breaker.ErrPaused) {
			return true
		}
		s.from.stopConsuming(s.d.sub)
		return false
	}
	return backoff.Sleep(pause, s.st.intake.Done(), s.d.sub.ctx.Done())
}

// goOn is called once the delivery is settled: it pauses its queue no longer.
func (s *settlement) goOn() {
	if !s.since.IsZero() {
		s.stall.end()
	}
}
