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

const (
	resubscribeMin = 500 * time.Millisecond
	resubscribeMax = 10 * time.Second
)

// consume subscribes again and again until intake is done or the session is
// lost: a channel that ends, or a consumer that the server cancels, concerns
// this queue only.
func (c *consumer) consume(st stages, s *session) {
	wait := backoff.New(resubscribeMin, resubscribeMax)
	for !st.stopping() && s.ctx.Err() == nil {
		started := time.Now()
		sub, err := c.attempt(st, s)
		if errors.Is(err, errOtherPrefetch) && !st.stopping() && s.ctx.Err() == nil {
			continue
		}
		c.caution.reconnected()
		if errors.Is(err, errStopped) || errors.Is(err, errOtherPrefetch) {
			err = nil
		}
		tell(c.obs, NotConsuming{c.queue, err})
		if st.stopping() || s.ctx.Err() != nil {
			return
		}
		if errors.Is(err, errPaused) && c.q.GoesUnused {
			continue
		}
		if errors.Is(err, errPaused) {
			c.sitOut(st, s, sub)
			continue
		}
		if errors.Is(err, errCrowded) {
			continue
		}
		if time.Since(started) > resubscribeMax && !errors.Is(err, errNoAnswer) {
			wait.Reset()
		}
		d := wait.Next()
		c.reportFailure(err, d)
		if !backoff.Sleep(d, st.intake.Done(), s.ctx.Done()) {
			return
		}
	}
}

// attempt subscribes once and handles deliveries until the subscription ends,
// which the error is about.
func (c *consumer) attempt(st stages, s *session) (*subscription, error) {
	s, leave, err := c.place(st, s)
	if err != nil {
		return nil, err
	}
	if err := c.declareOwn(st, s); err != nil {
		c.handlers.Go(leave)
		return nil, err
	}
	c.caution.serve(handsBackFree(s.conn))
	sub, deliveries := c.heirs.take(s)
	if sub == nil {
		sub, deliveries, err = c.subscribe(st, s)
	}
	if err != nil {
		c.handlers.Go(leave)
		return nil, c.declareAgain(st, err)
	}
	c.reportConsuming(sub)
	c.handlers.Go(sub.watch)
	if c.finishes(sub) {
		c.handlers.Go(func() { c.cancelAtStop(st, sub) })
	}
	if c.q.Order.By != "" && c.q.Batch.Size == 0 { // batches clear up themselves
		c.handlers.Go(func() { c.clearWaiting(c.handling(st, sub), sub) })
	}
	if c.q.Batch.Size > 0 {
		c.readBatches(st, sub, deliveries)
	} else {
		c.read(st, sub, deliveries)
	}
	if sub.polling != nil && sub.polling.empty {
		c.caution.alone = false
	}
	if !st.stopping() {
		err = sub.reason()
	}
	c.handlers.Go(func() {
		c.retire(sub)
		leave()
	})
	return sub, err
}

// place returns where to subscribe, and what to do with it afterwards. A queue
// that has not answered gets connections of its own: a question without an answer
// ends only with its connection, and the other queues need theirs. A queue that
// belongs to its connection stays there.
func (c *consumer) place(st stages, s *session) (*session, func(), error) {
	if !c.unanswered || c.q.Declare != nil {
		return s, func() {}, nil
	}
	ctx, cancel := context.WithCancel(st.intake)
	defer cancel()
	defer context.AfterFunc(s.ctx, cancel)()
	conn, err := c.dial(ctx, purposeConsume)
	if err != nil {
		return nil, nil, fmt.Errorf("connect for queue %q: %w", c.queue, err)
	}
	own, end := watch(s.ctx, conn)
	own.patience = s.patience
	own.chore(func() {
		<-own.ctx.Done()
		if s.ctx.Err() != nil {
			closing.Conn(conn) // it must not outlive s, answer or not
		}
	})
	return own, end, nil
}

func (c *consumer) reportConsuming(sub *subscription) {
	c.log.Debug("consuming", logkey.ConsumerTag, sub.tag)
	if c.unanswered {
		c.log.Info("queue answers again; consuming")
	}
	c.unanswered = false
	tell(c.obs, Consuming{c.queue})
}

// reportFailure logs why the queue is not consumed; of a queue that does not
// answer only the first time, since each try takes long and learns nothing new.
func (c *consumer) reportFailure(err error, next time.Duration) {
	level := slog.LevelError
	if errors.Is(err, errNoAnswer) {
		if c.unanswered {
			level = slog.LevelDebug
		}
		c.unanswered = true
	}
	c.log.Log(context.Background(), level, "not consuming; subscribing again", logkey.Error, err, logkey.RetryIn, next.Round(time.Millisecond))
}

// sitOut waits until the queue is not paused any more. The delivery that probes
// is the last one in hand; when it has to go as well, another must come.
func (c *consumer) sitOut(st stages, s *session, sub *subscription) {
	c.log.Warn("queue paused for long; its messages are handed back until the handler works")
	for {
		changed := c.breaker.Changing()
		if changed == nil {
			changed = c.stall.ending()
		}
		if changed == nil {
			return
		}
		select {
		case <-changed:
		case <-sub.ctx.Done():
			return
		case <-st.intake.Done():
			return
		case <-s.ctx.Done():
			return
		}
	}
}

// subscribe opens a channel of its own and starts a consumer with a tag of its
// own, or polling where that comes first: after a failure neither can be used again.
func (c *consumer) subscribe(st stages, s *session) (*subscription, <-chan amqp.Delivery, error) {
	ch, err := s.conn.Channel()
	if err != nil {
		return nil, nil, fmt.Errorf("open a channel: %w", err)
	}
	sub := newSubscription(s, ch, c.tag())
	stop, release := awhileAfter(st.intake, answerAtStop)
	defer release()
	if c.caution.polls() {
		deliveries, err := c.poll(sub, stop)
		if err != nil {
			sub.end(err)
			return nil, nil, err
		}
		return sub, deliveries, nil
	}
	if err := ch.Qos(c.caution.prefetch(c.q.Prefetch), 0, false); err != nil {
		sub.end(err)
		return nil, nil, fmt.Errorf("set the prefetch: %w", err)
	}
	deliveries, err := ask(s, stop, func() (<-chan amqp.Delivery, error) {
		return ch.Consume(c.queue, sub.tag, false, c.q.Consumer.Exclusive, false, false, c.q.Consumer.Arguments)
	})
	if err != nil {
		sub.end(err) // an answer that comes late finds its channel closed
		return nil, nil, consumeError(c.queue, err)
	}
	return sub, deliveries, nil
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

func (c *consumer) tag() string {
	prefix := c.q.Consumer.Tag
	if prefix == "" {
		prefix = "rsctl"
	}
	return prefix + "-" + strconv.FormatInt(c.tags.Add(1), 10)
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
func (c *consumer) stopConsuming(sub *subscription) bool {
	sub.stop.Do(func() {
		if sub.polling != nil {
			sub.polling.stop()
			return
		}
		_, err := ask(sub.session, nil, func() (struct{}, error) { return struct{}{}, sub.ch.Cancel(sub.tag, false) })
		sub.silent = errors.Is(err, errNoAnswer)
		if err != nil && sub.err() == nil {
			c.log.Warn("the consumer could not be cancelled", logkey.Error, err)
		}
	})
	return !sub.silent
}
