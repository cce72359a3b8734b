package runtime

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"sync/atomic"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rsctl/rsctl/pkg/hooks"
	"github.com/rsctl/rsctl/pkg/runtime/internal/held"
	"github.com/rsctl/rsctl/pkg/runtime/internal/recall"
	"github.com/rsctl/rsctl/pkg/runtime/memory"
	"github.com/rsctl/rsctl/pkg/runtime/message"
	"github.com/rsctl/rsctl/pkg/settle"
)

// shared is what the consumers of a run have in common.
type shared struct {
	pub     sender
	replies sender // of the handlers' replies
	dial    func(ctx context.Context, purpose string) (*amqp.Connection, error)
	room    held.Room
	bodies  *memory.Bodies
	short   *shortfall
	obs     Observer
	log     *slog.Logger // names the queue, in a consumer
}

// source is what a delivery that is to be settled may ask of where it came from.
type source interface {
	// handBack returns a delivery that no hook has seen.
	handBack(d *delivery)
	// endUnseen ends a delivery that no hook will see.
	endUnseen(d *delivery)
	// rest ends the deliveries of a queue that has been paused for so long that
	// nothing may be kept, and reports whether they end.
	rest(st lifetimes, sub *subscription, err error) bool
	// stopConsuming cancels the consumer that the delivery came by.
	stopConsuming(sub *subscription) bool
	// keepAside keeps a delivery unsettled for long, without a place of the others.
	keepAside(st lifetimes, d *delivery)
}

// settler ends the deliveries of one queue, for the whole run.
type settler struct {
	shared
	q      Queue
	queue  string
	from   source
	timers *held.Timers[*outgoing]
	copier message.Copier

	stall    *stall          // of copies that cannot arrive
	pace     *pace           // of their tries
	dead     deadLetterQueue // where the server dead-letters to
	warned   *warnings
	lost     *recall.LostAcks
	own      *recall.Returns           // what this process has given back
	returned atomic.Pointer[time.Time] // when a message last went back to a quorum queue
}

func newSettler(q Queue, s shared, from source) *settler {
	r := &settler{
		shared: s,
		q:      q,
		queue:  q.Policy.Queue,
		from:   from,
		copier: message.Copier{Queue: q.Policy.Queue, Persistent: q.Publisher.Persistent, Priority: q.Publisher.Priority},
		stall:  newStall(s.log, q.Policy.Queue, s.obs),
		pace:   newPace(),
		dead:   deadLetterQueue{name: q.Policy.DeadLetter},
		warned: newWarnings(s.log),
		lost:   recall.NewLostAcks(),
		own:    recall.NewReturns(),
	}
	r.timers = held.New(held.Config[*outgoing]{
		Publish:  func(ctx context.Context, o *outgoing) error { return s.pub.publish(ctx, o) },
		Name:     func(o *outgoing) (target, id string) { return o.Key, o.MessageId },
		Added:    func() { tell(r.obs, CopyHeld{r.queue}) },
		Released: func() { tell(r.obs, CopyReleased{r.queue}) },
		Room:     s.room,
		Memory:   s.bodies.Held(),
		Log:      s.log,
	})
	return r
}

// settlement is the end of one delivery. It carries what its steps need: the two
// kinds of stop, and the outcome that it follows from.
type settlement struct {
	*settler
	st    lifetimes
	d     *delivery
	o     hooks.Outcome
	since time.Time // a copy has failed since then, and the queue is paused; zero: none has
}

func (r *settler) settlement(st lifetimes, d *delivery, o hooks.Outcome) *settlement {
	return &settlement{settler: r, st: st, d: d, o: o}
}

// lose reports a delivery that ends unsettled.
func (r *settler) lose() { tell(r.obs, Settled{Queue: r.queue, Ending: EndedLost}) }

// routed is the queue's policy, with a route that only arguments give.
func (r *settler) routed() settle.Policy {
	p := r.q.Policy
	p.OwnRoute = p.OwnRoute || r.q.DeadLetterRoute
	return p
}

// returning reports whether a requeued message may still be on its way: a quorum
// queue shows it again once its log is on the disk, which may be busy.
func (r *settler) returning() bool {
	last := r.returned.Load()
	return last != nil && time.Since(*last) < returnsFor
}

// returnsFor is how long a message that was requeued may be nowhere.
const returnsFor = 2 * time.Second

func factsOf(d *delivery) settle.Facts {
	return settle.Facts{
		Attempt:     d.reading.Attempt,
		Counted:     d.reading.Counted,
		Redelivered: d.Redelivered,
		Jitter:      rand.Float64(),
	}
}

func targetName(t settle.Target) string {
	if t.Exchange == "" {
		return t.Key
	}
	return t.Exchange + "/" + t.Key
}

func nameOf(o *outgoing) string {
	return targetName(settle.Target{Exchange: o.Exchange, Key: o.Key})
}
