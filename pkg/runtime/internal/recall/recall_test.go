package recall

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

func TestALostAckIsRememberedByMessageIDAndBody(t *testing.T) {
	t.Parallel()
	msg := func(id, body string) *amqp.Delivery { return &amqp.Delivery{MessageId: id, Body: []byte(body)} }
	tests := []struct {
		name       string
		lost, back *amqp.Delivery
		after      time.Duration
		remembered bool
		taken      bool
	}{
		{"the same message is known again", msg("a", "x"), msg("a", "x"), 0, true, true},
		{"without a message_id nothing is remembered", msg("", "x"), msg("", "x"), 0, false, false},
		{"another message_id is another message", msg("a", "x"), msg("b", "x"), 0, true, false},
		{"a producer that uses an id twice loses nothing", msg("a", "x"), msg("a", "y"), 0, true, false},
		{"it is known for a while", msg("a", "x"), msg("a", "x"), ackLife - time.Second, true, true},
		{"and then forgotten", msg("a", "x"), msg("a", "x"), ackLife, true, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				l := NewLostAcks()
				if l.Take(tt.back) {
					t.Error("taken before anything was lost")
				}
				if got := l.Remember(tt.lost); got != tt.remembered {
					t.Errorf("Remember() = %v", got)
				}
				time.Sleep(tt.after)
				if got := l.Take(tt.back); got != tt.taken {
					t.Errorf("Take() = %v, want %v", got, tt.taken)
				}
				if l.Take(tt.back) {
					t.Error("taken twice")
				}
			})
		})
	}
}

func TestTheMemoryOfLostAcksIsBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := NewLostAcks()
		for i := range mostAcks {
			if !l.Remember(&amqp.Delivery{MessageId: fmt.Sprint(i)}) {
				t.Fatalf("forgot number %d", i)
			}
		}
		more := &amqp.Delivery{MessageId: "more"}
		if l.Remember(more) {
			t.Error("remembered more than the bound")
		}
		time.Sleep(ackLife)
		if !l.Remember(more) || !l.Take(more) {
			t.Error("old ones made no room")
		}
		if n := len(l.acks); n != 0 {
			t.Errorf("%d old ones are kept", n)
		}
	})
}

func numbered(i int) *amqp.Delivery { return &amqp.Delivery{MessageId: fmt.Sprint(i)} }

func TestTheMemoryOfReturnsIsBounded(t *testing.T) {
	t.Parallel()
	o := NewReturns()
	for i := range 10 * mostReturns {
		o.Add(numbered(i))
	}
	if n := len(o.now) + len(o.old); n > 2*mostReturns {
		t.Errorf("%d are remembered", n)
	}
	if o.Has(numbered(0)) || !o.Has(numbered(10*mostReturns-1)) {
		t.Error("the oldest is remembered, or the newest is not")
	}
}
