package confirm

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"
)

// publishing runs a publisher on the bench's broker until the test ends.
func (b *bench) publishing() *Publisher {
	b.t.Helper()
	p := New(Config{Dial: func(context.Context) (*amqp.Connection, error) { return amqp.Dial(b.url) }, Timeout: patience})
	ctx, stop := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { p.Run(ctx) })
	b.t.Cleanup(func() { stop(); running.Wait() })
	return p
}

func messageTo(exchange, key string, n int) *Message {
	return &Message{Exchange: exchange, Key: key, Mandatory: true, Publishing: amqp.Publishing{MessageId: fmt.Sprint(n), Body: []byte("x")}}
}

func TestPublisherMessagesThatShareAChannelGetTheirOwnAnswers(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	there := b.queue(nil)
	full := b.queue(amqp.Table{"x-max-length": int64(1), "x-overflow": "reject-publish"})
	b.fill(full)
	p := b.publishing()
	kinds := []struct {
		exchange, key string
		want          error
	}{
		{"", there, nil},
		{"", there + ".missing", ErrReturned},
		{"", full, ErrNacked},
		{"no-such-exchange", there, ErrRefused},
	}
	const each = 100
	var sending sync.WaitGroup
	for i := range each {
		for _, kind := range kinds {
			sending.Go(func() {
				err := p.Publish(t.Context(), messageTo(kind.exchange, kind.key, i))
				if !errors.Is(err, kind.want) || (kind.want == nil) != (err == nil) {
					t.Errorf("a message to %q %q: %v, want %v", kind.exchange, kind.key, err, kind.want)
				}
			})
		}
	}
	sending.Wait()
	ids := map[string]bool{}
	for _, id := range b.ids(there) {
		ids[id] = true
	}
	if len(ids) != each {
		t.Errorf("%d of %d confirmed messages are in the queue", len(ids), each)
	}
}

func TestPublisherSharesFewChannelsAmongManyMessages(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	q := b.queue(nil)
	p := b.publishing()
	var sending sync.WaitGroup
	for i := range 1000 {
		sending.Go(func() {
			if err := p.Publish(t.Context(), messageTo("", q, i)); err != nil {
				t.Error(err)
			}
		})
	}
	sending.Wait()
	c, err := p.current(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if n, most := len(c.shared), maxInFlight/channelWidth; n > most {
		t.Errorf("%d channels were opened, want at most %d", n, most)
	}
	for _, ch := range c.shared {
		if len(ch.inFlight) != 0 {
			t.Errorf("%d messages are still noted as in flight", len(ch.inFlight))
		}
	}
}

func TestPublisherMessageThatIsGivenUpRetiresItsChannel(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	q := b.queue(nil)
	p := b.publishing()
	if err := p.Publish(t.Context(), messageTo("", q, 0)); err != nil {
		t.Fatal(err)
	}
	c, err := p.current(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	pending, err := c.acquire(messageTo("", q, 1))
	if err != nil {
		t.Fatal(err)
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if err := p.send(gone, c, pending); err == nil {
		return // the confirm was faster than the end of the context
	}
	if pending.ch.acquire(messageTo("", q, 2)) != nil {
		t.Error("the channel takes another message although a late return may come for the one that was given up")
	}
	b.eventually("the channel to be closed", pending.ch.ch.IsClosed)
	if err := p.Publish(t.Context(), messageTo("", q, 3)); err != nil {
		t.Errorf("the next message: %v", err)
	}
}
