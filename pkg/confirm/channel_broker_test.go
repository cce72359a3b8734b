package confirm

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"
)

func (b *bench) opened(width int) *Channel {
	b.t.Helper()
	c, err := Open(b.conn, width)
	if err != nil {
		b.t.Fatal(err)
	}
	return c
}

func TestChannelKeepsTheOrderOfWhatItSends(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	q := b.queue(nil)
	const width, all = 8, 40
	c := b.opened(width)
	var want []string
	var pending []*Pending
	for i := range all {
		want = append(want, strconv.Itoa(i))
		p, err := c.Send(messageTo("", q, i))
		if err != nil {
			t.Fatal(err)
		}
		if pending = append(pending, p); len(pending) == width {
			if err := pending[0].Wait(t.Context()); err != nil {
				t.Fatal(err)
			}
			pending = pending[1:]
		}
	}
	for _, p := range pending {
		if err := p.Wait(t.Context()); err != nil {
			t.Error(err)
		}
	}
	if got := b.ids(q); !slices.Equal(got, want) {
		t.Errorf("the queue has %q, want %q", got, want)
	}
}

func TestChannelTellsWhatBecameOfAMessage(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	there := b.queue(nil)
	full := b.queue(amqp.Table{"x-max-length": int64(1), "x-overflow": "reject-publish"})
	b.fill(full)
	for _, tt := range []struct {
		name, exchange, key string
		want                error
	}{
		{"a queue takes it", "", there, nil},
		{"there is no such queue", "", there + ".missing", ErrReturned},
		{"the queue is full", "", full, ErrNacked},
		{"there is no such exchange", "no-such-exchange", there, ErrRefused},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p, err := b.opened(1).Send(messageTo(tt.exchange, tt.key, 0))
			if err == nil {
				err = p.Wait(t.Context())
			}
			if !errors.Is(err, tt.want) || (tt.want == nil) != (err == nil) {
				t.Errorf("got %v, want %v", err, tt.want)
			}
		})
	}
}

func TestChannelTakesNoMoreThanItsWidth(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	q := b.queue(nil)
	c := b.opened(1)
	first, err := c.Send(messageTo("", q, 0))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Send(messageTo("", q, 1)); !errors.Is(err, errNoRoom) {
		t.Errorf("a second message beside one that waits: %v, want %v", err, errNoRoom)
	}
	if err := first.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Send(messageTo("", q, 2)); err != nil {
		t.Errorf("the next message: %v", err)
	}
}

func TestChannelSaysWhenItsConnectionIsLost(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	conn, err := amqp.Dial(b.url)
	if err != nil {
		t.Fatal(err)
	}
	c, err := Open(conn, 1)
	if err != nil {
		t.Fatal(err)
	}
	if err := conn.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Send(messageTo("", "q", 0)); !errors.Is(err, ErrUnknown) {
		t.Errorf("sending on a closed connection: %v, want %v", err, ErrUnknown)
	}
	if _, err := Open(conn, 1); !errors.Is(err, ErrUnknown) {
		t.Errorf("opening a channel on it: %v, want %v", err, ErrUnknown)
	}
}

func TestPendingEndsWithItsContext(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	c := b.opened(1)
	p, err := c.Send(messageTo("", b.queue(nil), 0))
	if err != nil {
		t.Fatal(err)
	}
	why := errors.New("no more time")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(why)
	if err := p.Wait(ctx); err != nil && !errors.Is(err, why) {
		t.Errorf("Wait() = %v, want %v, or nil for a confirm that was faster", err, why)
	}
}
