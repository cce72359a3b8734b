package runtime

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rsctl/rsctl/pkg/closing"
	"github.com/rsctl/rsctl/pkg/confirm"
	"github.com/rsctl/rsctl/pkg/settle"
)

var errEndsConnection = errors.New("the broker closed the connection over a reply to it")

// replies publishes what handlers answer, on a connection of its own that is
// opened for the first reply. Whoever sends a request chooses the address, and
// RabbitMQ up to 4.0 closes the connection that publishes to one it cannot read:
// no copy must be on it.
//
// When the connection is lost, each reply that was on it is sent once more, with
// nothing beside it. An address that ends the connection then is the one that
// did it, and gets no reply any more.
type replies struct {
	pub    *copies
	wanted chan struct{} // closed with the first reply
	want   sync.Once
	beside sync.RWMutex // held for writing while a reply is alone on the connection
	ended  *recent      // addresses that ended a connection
}

func newReplies(cfg Config) *replies {
	return &replies{pub: newCopies(cfg, purposeReply), wanted: make(chan struct{}), ended: newRecent(endedKept)}
}

// run keeps the connection open from the first reply until ctx is done.
func (r *replies) run(ctx context.Context) {
	select {
	case <-r.wanted:
		r.pub.Run(ctx)
	case <-ctx.Done():
	}
}

// publish implements sender.
func (r *replies) publish(ctx context.Context, o *outgoing) error {
	r.want.Do(func() { close(r.wanted) })
	err := r.amongOthers(ctx, o)
	if !errors.Is(err, confirm.ErrUnknown) || ctx.Err() != nil {
		return err
	}
	return r.alone(ctx, o)
}

func (r *replies) fits(o *outgoing, frame int) error { return r.pub.fits(o, frame) }

func (r *replies) amongOthers(ctx context.Context, o *outgoing) error {
	r.beside.RLock()
	defer r.beside.RUnlock()
	return r.send(ctx, o)
}

func (r *replies) alone(ctx context.Context, o *outgoing) error {
	r.beside.Lock()
	defer r.beside.Unlock()
	err := r.send(ctx, o)
	if endedByBroker(err) {
		r.ended.add(o.Key)
		return fmt.Errorf("%w: %w: %w", errBadAddress, errEndsConnection, err)
	}
	return err
}

func (r *replies) send(ctx context.Context, o *outgoing) error {
	if r.ended.has(o.Key) {
		tellForbidden(r.pub.obs, o.queue)
		return fmt.Errorf("%w: %w", errBadAddress, errEndsConnection)
	}
	return r.pub.publish(ctx, o)
}

// tellForbidden counts a reply that is not sent for its address.
func tellForbidden(o Observer, queue string) {
	tell(o, CopyStarted{queue, settle.ForReply})
	tell(o, CopyEnded{queue, settle.ForReply, CopyForbidden})
}

// endedByBroker reports whether the broker has closed the connection over what
// was published. Somebody who closes it, or a node that stops, is 320.
func endedByBroker(err error) bool {
	var why *amqp.Error
	return errors.As(err, &why) && why.Server && closing.EndsConnection(why) && why.Code != amqp.ConnectionForced
}

// endedKept is how many addresses that ended a connection are kept.
const endedKept = 1000

// recent keeps the last few names that were added.
type recent struct {
	most  int
	mu    sync.Mutex
	names []string // the oldest first
}

func newRecent(most int) *recent { return &recent{most: most} }

func (r *recent) add(name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.names) == r.most {
		r.names = slices.Delete(r.names, 0, 1)
	}
	r.names = append(r.names, name)
}

func (r *recent) has(name string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Contains(r.names, name)
}
