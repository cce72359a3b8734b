package runtime

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rsctl/rsctl/pkg/closing"
	"github.com/rsctl/rsctl/pkg/internal/backoff"
	"github.com/rsctl/rsctl/pkg/runtime/internal/logkey"
)

// place returns where to subscribe, and what to do with it afterwards. A queue
// that has not answered gets connections of its own: a question without an answer
// ends only with its connection, and the other queues need theirs. A queue that
// belongs to its connection stays there.
func (r *subscriber) place(st lifetimes, s *session) (*session, func(), error) {
	if !r.unanswered || r.q.Declare != nil {
		return s, func() {}, nil
	}
	ctx, cancel := context.WithCancel(st.intake)
	defer cancel()
	defer context.AfterFunc(s.ctx, cancel)()
	conn, err := r.dial(ctx, purposeConsume)
	if err != nil {
		return nil, nil, fmt.Errorf("connect for queue %q: %w", r.queue, err)
	}
	own, end := watch(s.ctx, conn)
	own.answerTimeout = s.answerTimeout
	own.background(func() {
		<-own.ctx.Done()
		if s.ctx.Err() != nil {
			closing.Conn(conn) // it must not outlive s, answer or not
		}
	})
	return own, end, nil
}

func (r *subscriber) reportConsuming(sub *subscription) {
	r.log.Debug("consuming", logkey.ConsumerTag, sub.tag)
	if r.unanswered {
		r.log.Info("queue answers again; consuming")
	}
	r.unanswered = false
	tell(r.obs, Consuming{r.queue})
}

// reportFailure logs why the queue is not consumed; of a queue that does not
// answer only the first time, since each try takes long and learns nothing new.
func (r *subscriber) reportFailure(err error, next time.Duration) {
	level := slog.LevelError
	if errors.Is(err, errNoAnswer) {
		if r.unanswered {
			level = slog.LevelDebug
		}
		r.unanswered = true
	}
	r.log.Log(context.Background(), level, "not consuming; subscribing again", logkey.Error, err, logkey.RetryIn, next.Round(time.Millisecond))
}

// subscribe opens a channel of its own and starts a consumer with a tag of its
// own, or polling where that comes first: after a failure neither can be used again.
func (r *subscriber) subscribe(st lifetimes, s *session) (*subscription, <-chan amqp.Delivery, error) {
	ch, err := s.conn.Channel()
	if err != nil {
		return nil, nil, fmt.Errorf("open a channel: %w", err)
	}
	sub := newSubscription(s, ch, r.tag())
	stop, release := awhileAfter(st.intake, answerAtStop)
	defer release()
	if r.caution.polls() {
		deliveries, err := r.poll(sub, stop)
		if err != nil {
			sub.end(err)
			return nil, nil, err
		}
		return sub, deliveries, nil
	}
	if err := ch.Qos(r.caution.prefetch(r.q.Prefetch), 0, false); err != nil {
		sub.end(err)
		return nil, nil, fmt.Errorf("set the prefetch: %w", err)
	}
	deliveries, err := ask(s, stop, func() (<-chan amqp.Delivery, error) {
		return ch.Consume(r.queue, sub.tag, false, r.q.Consumer.Exclusive, false, false, r.q.Consumer.Arguments)
	})
	if err != nil {
		sub.end(err) // an answer that comes late finds its channel closed
		return nil, nil, consumeError(r.queue, err)
	}
	return sub, deliveries, nil
}

func (r *subscriber) get(sub *subscription, stop <-chan struct{}) (got, error) {
	g, err := ask(sub.session, stop, func() (g got, err error) {
		g.Delivery, g.ok, err = sub.ch.Get(r.queue, false)
		return g, err
	})
	if err != nil {
		return got{}, consumeError(r.queue, err)
	}
	return g, nil
}

// poll starts polling on the channel of sub. The deliveries end after stop, with
// the channel, and when nothing is left.
func (r *subscriber) poll(sub *subscription, stop <-chan struct{}) (<-chan amqp.Delivery, error) {
	first, err := r.get(sub, stop)
	if err != nil {
		return nil, err
	}
	sub.polling = newPolling()
	out := make(chan amqp.Delivery)
	r.handlers.Go(func() {
		defer close(out)
		sub.polling.run(sub, first, out, func() (got, error) { return r.get(sub, nil) })
	})
	return out, nil
}

// answerAtStop is how long a stop waits for the answer to a basic.consume. What
// the broker has sent by then can be read and handed back; the end of the channel
// would count an attempt of it on a quorum queue.
const answerAtStop = time.Second

// awhileAfter returns a channel that is closed d after ctx has ended, until
// release.
func awhileAfter(ctx context.Context, d time.Duration) (<-chan struct{}, func()) {
	late, end := context.WithCancel(context.WithoutCancel(ctx))
	undo := context.AfterFunc(ctx, func() {
		backoff.Sleep(d, late.Done())
		end()
	})
	return late.Done(), func() { undo(); end() }
}

func (r *subscriber) tag() string {
	prefix := r.q.Consumer.Tag
	if prefix == "" {
		prefix = "rsctl"
	}
	return prefix + "-" + strconv.FormatInt(r.tags.Add(1), 10)
}

// isDown tells a queue that its node keeps from us from one that does not exist:
// RabbitMQ reports both as not found.
func isDown(ex *amqp.Error) bool {
	return strings.Contains(ex.Reason, "down or inaccessible") || strings.Contains(ex.Reason, "due to timeout")
}

// consumeError says what a refused basic.consume means.
func consumeError(queue string, err error) error {
	if errors.Is(err, errNoAnswer) {
		return fmt.Errorf("queue %q does not answer; if the node that holds it is down, or most nodes of a quorum queue, bring them back: %w", queue, err)
	}
	var ex *amqp.Error
	if !errors.As(err, &ex) {
		return fmt.Errorf("consume: %w", err)
	}
	switch ex.Code {
	case amqp.NotFound:
		if isDown(ex) {
			return fmt.Errorf("queue %q cannot be reached; bring the node that holds it back: %w", queue, err)
		}
		return fmt.Errorf("queue %q does not exist; declare it with rsctl apply: %w", queue, err)
	case amqp.AccessRefused:
		return fmt.Errorf("queue %q may not be consumed (missing read permission, or another consumer has it exclusively): %w", queue, err)
	case amqp.ResourceLocked:
		return fmt.Errorf("queue %q is locked: another connection holds it exclusively: %w", queue, err)
	}
	return fmt.Errorf("consume: %w", err)
}

// stopConsuming cancels the consumer, once, and waits until it is. It reports
// false when the broker does not answer: the deliveries then need not end.
func (r *subscriber) stopConsuming(sub *subscription) bool {
	sub.stop.Do(func() {
		if sub.polling != nil {
			sub.polling.stop()
			return
		}
		_, err := ask(sub.session, nil, func() (struct{}, error) { return struct{}{}, sub.ch.Cancel(sub.tag, false) })
		sub.silent = errors.Is(err, errNoAnswer)
		if err != nil && sub.err() == nil {
			r.log.Warn("the consumer could not be cancelled", logkey.Error, err)
		}
	})
	return !sub.silent
}

// changePrefetch ends the consumer, or the polling, so that one with another
// prefetch follows it; what it has in hand is settled on its channel. It reports
// false when the deliveries need not end.
func (r *subscriber) changePrefetch(sub *subscription) bool {
	if r.caution.alone {
		r.log.Info("a message came back counted that this process has not run; one message at a time until all of those have run", logkey.ConsumerTag, sub.tag)
	} else {
		r.log.Debug("no more messages that another process may have died of", logkey.ConsumerTag, sub.tag)
	}
	sub.setReason(errOtherPrefetch)
	return r.stopConsuming(sub)
}
