// Package runtime consumes queues, calls hooks and settles every delivery as
// package settle decides.
package runtime

import (
	"context"
	"log/slog"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rsctl/rsctl/pkg/hooks"
	"github.com/rsctl/rsctl/pkg/settle"
)

// Config is what Run needs. Its queues must have unique names.
type Config struct {
	// Dial opens one connection; purpose is "consume" or "publish". An error
	// for which Permanent returns true ends Run; any other is tried again.
	Dial      func(ctx context.Context, purpose string) (*amqp.Connection, error)
	Permanent func(error) bool
	// Prepare runs after every dial of the consume connection, before the first
	// consumer: it declares or verifies what the queues need.
	Prepare func(ctx context.Context, conn *amqp.Connection) error

	Queues          []Queue
	ShutdownTimeout time.Duration // default 25s
	ConfirmTimeout  time.Duration // default 30s
	// Drain ends Run, with nil, once every queue is empty and nothing is held.
	Drain bool
	Log   *slog.Logger
}

// Queue is one queue to consume.
type Queue struct {
	Policy      settle.Policy
	Hook        hooks.Hook
	Timeout     time.Duration // of one hook call
	Prefetch    int
	Concurrency int
	Consumer    Consumer
	Publisher   Publisher
	// RetryUnavailable settles a delivery whose hook could not be run as a
	// retry instead of pausing the queue.
	RetryUnavailable bool
}

// Consumer holds the arguments of basic.consume.
type Consumer struct {
	Tag       string // a suffix makes it unique per channel
	Exclusive bool
	Arguments map[string]any
}

// Publisher overrides properties of the copies of a classic queue.
type Publisher struct {
	Persistent *bool
	Priority   *uint8
}

// Run consumes until intake is done and then drains: it waits for running hooks
// and held copies up to the shutdown timeout. Ending work, whose child intake
// must be, stops at once. Run returns after the last goroutine it started.
func Run(intake, work context.Context, cfg Config) error { panic("TODO") }
