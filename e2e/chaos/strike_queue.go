package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rsctl/rsctl/e2e/ledger"
)

// outage is how long a queue is missing, full or forbidden.
const outage = 3 * time.Second

// deleteWorkQueues deletes the queues that are consumed, with all they hold.
func deleteWorkQueues(ctx context.Context, s *stage, _ plan) error {
	return s.deleteQueues(ctx, func(q queue) string { return q.name })
}

func deleteWaitingQueues(ctx context.Context, s *stage, _ plan) error {
	return s.deleteQueues(ctx, queue.waiting)
}

// deleteQueues deletes one queue of each kind and declares it again after a
// while.
func (s *stage) deleteQueues(ctx context.Context, which func(queue) string) error {
	err := s.withChannel(func(ch *amqp.Channel) error {
		for _, q := range s.fault.queues {
			if name := which(q); name != "" {
				if _, err := ch.QueueDelete(name, false, false, false); err != nil {
					return err
				}
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	if err := pause(ctx, outage); err != nil {
		return err
	}
	now := time.Now()
	if s.deleted == nil {
		s.deleted = map[string]time.Time{}
	}
	for _, q := range s.fault.queues {
		s.deleted[which(q)] = now
	}
	return s.apply()
}

// gone says what was deleted together with its queue: what was in the work
// queue, or what waited in the waiting queue. A classic waiting queue also drops
// what expires while its work queue does not exist.
func (s *stage) gone(id string, published time.Time, last string) bool {
	name, _, _ := strings.Cut(id, "/")
	for _, q := range s.fault.queues {
		if q.name != name {
			continue
		}
		work, waiting := s.deleted[q.name], s.deleted[q.waiting()]
		if last == ledger.After && q.waiting() != "" {
			return waiting.After(published) || q.kind == "classic" && work.After(published)
		}
		return work.After(published)
	}
	return false
}

// deleteDeadLetterQueues deletes each dead-letter queue after its messages were
// taken out.
func deleteDeadLetterQueues(ctx context.Context, s *stage, _ plan) error {
	for _, q := range s.fault.queues {
		if err := s.takeAndDelete(ctx, q.dead()); err != nil {
			return fmt.Errorf("delete %s: %w", q.dead(), err)
		}
	}
	if err := pause(ctx, outage); err != nil {
		return err
	}
	return s.apply()
}

// takeAndDelete lets nothing in between its last look and the deletion: nothing
// is ready, and what the broker cannot tell us it would refuse to delete.
func (s *stage) takeAndDelete(ctx context.Context, name string) error {
	for ctx.Err() == nil {
		err := s.withChannel(func(ch *amqp.Channel) error {
			if err := take(ch, name, &s.taken); err != nil {
				return err
			}
			_, err := ch.QueueDelete(name, false, true, false)
			return err
		})
		var ex *amqp.Error
		if !errors.As(err, &ex) || ex.Code != amqp.PreconditionFailed {
			return err
		}
	}
	return context.Cause(ctx)
}

// fillUp makes the queues that match a pattern refuse every message for a while.
func fillUp(pattern string) func(context.Context, *stage, plan) error {
	return func(ctx context.Context, s *stage, _ plan) error {
		path := "policies/" + s.host.Name + "/full"
		full := `{"pattern":"` + pattern + `","definition":{"max-length":0,"overflow":"reject-publish"},"apply-to":"queues"}`
		if err := s.host.Manage(ctx, http.MethodPut, path, full, nil); err != nil {
			return err
		}
		err := pause(ctx, outage)
		return errors.Join(err, s.host.Manage(context.WithoutCancel(ctx), http.MethodDelete, path, "", nil))
	}
}

// limitedUser makes a user whose permissions can be changed.
func limitedUser(ctx context.Context, s *stage) (string, error) {
	s.user = s.host.Name
	if err := s.host.Manage(ctx, http.MethodPut, "users/"+s.user, `{"password":"secret","tags":""}`, nil); err != nil {
		return "", err
	}
	s.onClose(func() error {
		return s.host.Manage(context.WithoutCancel(ctx), http.MethodDelete, "users/"+s.user, "", nil)
	})
	u, err := url.Parse(s.host.URL)
	if err != nil {
		return "", err
	}
	u.User = url.UserPassword(s.user, "secret")
	return u.String(), s.allowWrites(ctx, ".*")
}

func (s *stage) allowWrites(ctx context.Context, pattern string) error {
	body := fmt.Sprintf(`{"configure":".*","write":"%s","read":".*"}`, pattern)
	return s.host.Manage(ctx, http.MethodPut, "permissions/"+s.host.Name+"/"+s.user, body, nil)
}

// forbidCopies takes the permission to publish away. The broker remembers what a
// channel may do, so the connections are made anew.
func forbidCopies(ctx context.Context, s *stage, _ plan) error {
	if err := s.allowWrites(ctx, "^$"); err != nil {
		return err
	}
	s.proxy.Cut()
	err := pause(ctx, outage)
	return errors.Join(err, s.allowWrites(context.WithoutCancel(ctx), ".*"))
}

func (s *stage) withChannel(f func(*amqp.Channel) error) error {
	conn, err := ledger.Dial(s.urls)
	if err != nil {
		return err
	}
	defer conn.Close()
	ch, err := conn.Channel()
	if err != nil {
		return err
	}
	return f(ch)
}
