package runtime

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rsctl/rsctl/pkg/settle"
)

// publishing runs a publisher on the bench's broker until the test ends.
func (b *bench) publishing() *publisher {
	b.t.Helper()
	cfg := b.config()
	cfg.ConfirmTimeout = patience
	p := newPublisher(cfg)
	ctx, stop := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { p.run(ctx) })
	b.t.Cleanup(func() { stop(); running.Wait() })
	return p
}

func copyTo(exchange, key string, n int) *outgoing {
	return &outgoing{exchange: exchange, key: key, mandatory: true, msg: amqp.Publishing{MessageId: fmt.Sprint(n), Body: []byte("x")}}
}

func TestCopiesThatShareAChannelGetTheirOwnAnswers(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	there := b.queue(settle.Classic, nil)
	full := b.queue(settle.Classic, amqp.Table{"x-max-length": int64(1), "x-overflow": "reject-publish"})
	b.publish(full, amqp.Publishing{})
	p := b.publishing()
	kinds := []struct {
		exchange, key string
		want          error
	}{
		{"", there, nil},
		{"", there + ".missing", errReturned},
		{"", full, errNacked},
		{"no-such-exchange", there, errRefused},
	}
	const each = 100
	var copies sync.WaitGroup
	for i := range each {
		for _, kind := range kinds {
			copies.Go(func() {
				err := p.publish(t.Context(), copyTo(kind.exchange, kind.key, i))
				if !errors.Is(err, kind.want) || (kind.want == nil) != (err == nil) {
					t.Errorf("a copy to %q %q: %v, want %v", kind.exchange, kind.key, err, kind.want)
				}
			})
		}
	}
	copies.Wait()
	ids := map[string]bool{}
	for b.ready(there) > 0 {
		ids[b.get(there).MessageId] = true
	}
	if len(ids) != each {
		t.Errorf("%d of %d confirmed copies are in the queue", len(ids), each)
	}
}

func TestManyCopiesShareFewChannels(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	q := b.queue(settle.Classic, nil)
	p := b.publishing()
	var copies sync.WaitGroup
	for i := range 1000 {
		copies.Go(func() {
			if err := p.publish(t.Context(), copyTo("", q, i)); err != nil {
				t.Error(err)
			}
		})
	}
	copies.Wait()
	l, err := p.current(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if n, most := len(l.lanes), maxCopiesInFlight/laneWidth; n > most {
		t.Errorf("%d channels were opened, want at most %d", n, most)
	}
	for _, ln := range l.lanes {
		if len(ln.inFlight) != 0 {
			t.Errorf("%d copies are still noted as in flight", len(ln.inFlight))
		}
	}
}

func TestACopyGivenUpRetiresItsChannel(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	q := b.queue(settle.Classic, nil)
	p := b.publishing()
	if err := p.publish(t.Context(), copyTo("", q, 0)); err != nil {
		t.Fatal(err)
	}
	l, err := p.current(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ln, s, err := l.share(copyTo("", q, 1))
	if err != nil {
		t.Fatal(err)
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if err := p.send(gone, l, ln, s); err == nil {
		return // the confirm was faster than the end of the context
	}
	if ln.enter(copyTo("", q, 2)) != nil {
		t.Error("the channel takes another copy although a late return may come for the one that was given up")
	}
	b.eventually("the channel to be closed", ln.ch.IsClosed)
	if err := p.publish(t.Context(), copyTo("", q, 3)); err != nil {
		t.Errorf("the next copy: %v", err)
	}
}
