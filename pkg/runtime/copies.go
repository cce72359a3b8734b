package runtime

import (
	"context"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rsctl/rsctl/pkg/confirm"
	"github.com/rsctl/rsctl/pkg/runtime/internal/logkey"
	"github.com/rsctl/rsctl/pkg/settle"
)

// What a connection is for. [Config.Dial] is told, and so is the observer.
const (
	purposeConsume = "consume"
	purposePublish = "publish"
	purposeReply   = "reply"
)

// outgoing is one copy on its way.
type outgoing struct {
	queue   string // whose copy it is
	purpose settle.Purpose
	confirm.Message
}

// sender is what consumers and timers need to publish.
type sender interface {
	// publish returns nil once the copy has arrived for sure.
	publish(ctx context.Context, o *outgoing) error
	// fits returns [confirm.ErrTooLarge] for a copy that could not be sent on a
	// connection with this frame size; 0 is no limit.
	fits(o *outgoing, frame int) error
}

// copies publishes on a connection of its own and tells the observer of it.
type copies struct {
	*confirm.Publisher
	obs Observer
}

// newCopies returns what publishes on the connection of a purpose. What blocks one
// connection blocks the others, so that is told of one of them.
func newCopies(cfg Config, purpose string) *copies {
	events := confirm.Events{
		Connected: func() { tell(cfg.Observer, Connected{Purpose: purpose}) },
		Disconnected: func(err error, retryIn time.Duration) {
			tell(cfg.Observer, Disconnected{Purpose: purpose, Err: err})
			if err != nil {
				cfg.Log.Warn("no connection to publish on; trying again", logkey.Purpose, purpose, logkey.Error, err, logkey.RetryIn, retryIn)
			}
		},
		Blocked: func(reason string) {
			cfg.Log.Warn("broker blocks publishing; copies wait, other settlements go on", logkey.Reason, reason)
			if purpose == purposePublish {
				tell(cfg.Observer, Blocked{reason})
			}
		},
		Unblocked: func() {
			cfg.Log.Info("broker takes publishings again")
			if purpose == purposePublish {
				tell(cfg.Observer, Unblocked{})
			}
		},
	}
	dial := func(ctx context.Context) (*amqp.Connection, error) { return cfg.Dial(ctx, purpose) }
	return &copies{confirm.New(confirm.Config{Dial: dial, Timeout: cfg.ConfirmTimeout, Events: events}), cfg.Observer}
}

// publish implements sender. Ending ctx gives up waiting; the copy may then have
// arrived or not.
func (c *copies) publish(ctx context.Context, o *outgoing) error {
	tell(c.obs, CopyStarted{o.queue, o.purpose})
	err := c.Publish(ctx, &o.Message)
	if c.obs != nil {
		c.obs.Observe(CopyEnded{o.queue, o.purpose, resultOf(ctx, err)})
	}
	return err
}

func (c *copies) fits(o *outgoing, frame int) error { return c.Fits(&o.Message, frame) }
