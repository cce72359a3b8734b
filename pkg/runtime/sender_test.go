package runtime

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"
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
