package ledger

import (
	"context"
	"errors"
	"fmt"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// A Load publishes messages to one queue until it is told to stop.
type Load struct {
	Ledger *Ledger
	// URLs are the brokers, of which the first that answers is used.
	URLs  []string
	Queue string
	Plan  func(i int) Plan
	// Total ends the load after so many messages; 0 is no end.
	Total int
	// Backlog is how many ready messages the queue may hold; at that many the
	// load waits. 0 is no bound.
	Backlog int
	// Pause is waited after each twenty messages.
	Pause time.Duration
}

const batch = 20

// Run publishes until ctx is done or Total is reached. A connection that is lost
// is opened again; what was not confirmed then is not counted as published, and
// its ids are never used again.
func (l *Load) Run(ctx context.Context) {
	next := 0
	for ctx.Err() == nil && (l.Total == 0 || l.Ledger.InQueue(l.Queue) < l.Total) {
		if err := l.session(ctx, &next); err != nil {
			sleep(ctx, 100*time.Millisecond)
		}
	}
}

var errMissing = errors.New("no such queue")

// session publishes on one channel until something goes wrong or all is done.
func (l *Load) session(ctx context.Context, next *int) error {
	conn, err := Dial(l.URLs)
	if err != nil {
		return err
	}
	defer conn.CloseDeadline(time.Now().Add(time.Second)) //nolint:errcheck // it may be broken
	silent := CloseAfter(conn, Silence)
	defer silent.Stop()
	ch, err := conn.Channel()
	if err != nil {
		return err
	}
	if err := ch.Confirm(false); err != nil {
		return err
	}
	returns := ch.NotifyReturn(make(chan amqp.Return, batch))
	for ctx.Err() == nil {
		silent.Reset(Silence)
		q, err := ch.QueueDeclarePassive(l.Queue, true, false, false, false, nil)
		if err != nil {
			return err
		}
		if l.Backlog > 0 && q.Messages >= l.Backlog {
			sleep(ctx, 10*time.Millisecond)
			continue
		}
		size := batch
		if l.Total > 0 {
			size = min(size, l.Total-l.Ledger.InQueue(l.Queue))
		}
		if size <= 0 {
			return nil
		}
		if err := l.publish(ctx, ch, returns, next, size); err != nil {
			return err
		}
		if l.Pause > 0 {
			sleep(ctx, l.Pause)
		}
	}
	return nil
}

// sent is a message whose confirm is awaited.
type sent struct {
	id      string
	plan    Plan
	confirm *amqp.DeferredConfirmation
}

func (l *Load) publish(ctx context.Context, ch *amqp.Channel, returns <-chan amqp.Return, next *int, size int) error {
	var all []sent
	for range size {
		s := sent{id: fmt.Sprintf("%s/%06d", l.Queue, *next), plan: l.Plan(*next)}
		*next++
		var err error
		s.confirm, err = ch.PublishWithDeferredConfirm("", l.Queue, true, false, amqp.Publishing{
			MessageId: s.id, DeliveryMode: amqp.Persistent, Body: []byte(s.plan.String()),
		})
		if err != nil {
			return err
		}
		all = append(all, s)
	}
	for i := range all {
		// Not ctx: a message in doubt at the end would only blur the count.
		limit, cancel := context.WithTimeout(context.WithoutCancel(ctx), 20*time.Second)
		ok, err := all[i].confirm.WaitContext(limit)
		cancel()
		if err != nil {
			return err
		}
		if !ok {
			all[i].id = ""
		}
	}
	return l.enterAll(all, returns)
}

// enterAll notes what was confirmed and not returned. A return comes before its
// confirm, so every one is in the channel by now.
func (l *Load) enterAll(all []sent, returns <-chan amqp.Return) error {
	returned := map[string]bool{}
	for len(returns) > 0 {
		r, open := <-returns
		if !open {
			break
		}
		returned[r.MessageId] = true
	}
	for _, s := range all {
		if s.id != "" && !returned[s.id] {
			l.Ledger.enter(l.Queue, s.id, s.plan)
		}
	}
	if len(returned) > 0 {
		return errMissing
	}
	return nil
}

// Silence is how long a broker may take for an answer. One whose queue has just
// lost its leader may give none at all, and the connection lives on.
const Silence = 30 * time.Second

// CloseAfter closes a connection after d, which ends every question on it, unless
// the timer is stopped or reset.
func CloseAfter(conn *amqp.Connection, d time.Duration) *time.Timer {
	return time.AfterFunc(d, func() {
		_ = conn.CloseDeadline(time.Now().Add(time.Second)) // it may be broken
	})
}

// Dial connects to the first broker that answers.
func Dial(urls []string) (*amqp.Connection, error) {
	var all error
	for _, url := range urls {
		conn, err := amqp.DialConfig(url, amqp.Config{Heartbeat: 10 * time.Second, Dial: amqp.DefaultDial(Silence)})
		if err == nil {
			return conn, nil
		}
		all = errors.Join(all, err)
	}
	return nil, all
}

func sleep(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}
