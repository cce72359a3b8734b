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
func deleteWorkQueues(ctx context.Context, s *scenario, _ plan) error {
	return s.deleteQueues(ctx, func(q queue) string { return q.name })
}

func deleteWaitingQueues(ctx context.Context, s *scenario, _ plan) error {
	return s.deleteQueues(ctx, queue.waiting)
}

// deleteQueues deletes one queue of each kind and declares it again after a
// while.
func (s *scenario) deleteQueues(ctx context.Context, which func(queue) string) error {
	err := s.withChannel(func(ch lent) error {
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

// gone says what may have been deleted together with its queue: what was in the
// work queue, or what waited in the waiting queue, or was on its way into a
// dead-letter queue.
func (s *scenario) gone(id string, published time.Time, last string) bool {
	if s.swept[id] {
		return true
	}
	name, _, _ := strings.Cut(id, "/")
	for _, q := range s.fault.queues {
		if q.name == name {
			waited := last == ledger.After && s.deleted[q.waiting()].After(published)
			return waited || s.deleted[q.name].After(published)
		}
	}
	return false
}

// deleteDeadLetterQueues deletes each dead-letter queue after its messages were
// taken out.
func deleteDeadLetterQueues(ctx context.Context, s *scenario, _ plan) error {
	for _, q := range s.fault.queues {
		if err := s.takeAndDelete(ctx, q.dead()); err != nil {
			return fmt.Errorf("delete %s: %w", q.dead(), err)
		}
	}
	// The broker confirms what was on its way into a queue that it deletes.
	var err error
	if s.swept, err = s.ledger.Spent(attempts); err != nil {
		return err
	}
	if err := pause(ctx, outage); err != nil {
		return err
	}
	return s.apply()
}

// takeAndDelete deletes a queue that is empty; a message that comes between the
// look and the deletion makes it look again.
func (s *scenario) takeAndDelete(ctx context.Context, name string) error {
	for ctx.Err() == nil {
		err := s.withChannel(func(ch lent) error {
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

// refuseWhenFull makes the queues that match a pattern refuse what they have no
// room for. It is in force before any limit is: a queue that gets both at once
// may apply the limit first, and drop what it holds.
func refuseWhenFull(pattern string) preparation {
	return func(ctx context.Context, s *scenario) (func() error, error) {
		return func() error { return nil }, setPolicy(ctx, s, "room", pattern, `"overflow":"reject-publish"`)
	}
}

// fillUp leaves the queues that match a pattern no room for a while.
func fillUp(pattern string) func(context.Context, *scenario, plan) error {
	return func(ctx context.Context, s *scenario, _ plan) error {
		if err := setPolicy(ctx, s, "room", pattern, `"overflow":"reject-publish","max-length":0`); err != nil {
			return err
		}
		err := pause(ctx, outage)
		return errors.Join(err, setPolicy(context.WithoutCancel(ctx), s, "room", pattern, `"overflow":"reject-publish"`))
	}
}

func setPolicy(ctx context.Context, s *scenario, name, pattern, definition string) error {
	body := fmt.Sprintf(`{"pattern":"%s","definition":{%s},"apply-to":"queues"}`, pattern, definition)
	return s.host.Manage(ctx, http.MethodPut, "policies/"+s.host.Name+"/"+name, body, nil)
}

// limitedUser makes a user whose permissions can be changed.
func limitedUser(ctx context.Context, s *scenario) (string, error) {
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
	return u.String(), allowWrites(ctx, s, ".*")
}

func allowWrites(ctx context.Context, s *scenario, pattern string) error {
	body := fmt.Sprintf(`{"configure":".*","write":"%s","read":".*"}`, pattern)
	return s.host.Manage(ctx, http.MethodPut, "permissions/"+s.host.Name+"/"+s.user, body, nil)
}

// forbidCopies takes the permission to publish away. The broker remembers what a
// channel may do, so the connections that rsctl publishes on are ended. The others
// stay: with them the messages in hand would lose an attempt.
func forbidCopies(ctx context.Context, s *scenario, _ plan) error {
	if err := allowWrites(ctx, s, "^$"); err != nil {
		return err
	}
	err := endPublishing(ctx, s)
	if err == nil {
		err = pause(ctx, outage)
	}
	return errors.Join(err, allowWrites(context.WithoutCancel(ctx), s, ".*"))
}

// endPublishing has the broker close the connections that rsctl publishes on. The
// management API knows of a new connection after some seconds, and of one that has
// ended for as long.
func endPublishing(ctx context.Context, s *scenario) error {
	return until(ctx, "the broker to close a connection that rsctl publishes on", func() bool {
		var conns []struct {
			Name    string `json:"name"`
			Purpose string `json:"user_provided_name"`
		}
		if err := s.host.Manage(ctx, http.MethodGet, "vhosts/"+s.host.Name+"/connections", "", &conns); err != nil {
			return false
		}
		ended := 0
		for _, c := range conns {
			if c.Purpose == "publish" && s.host.Manage(ctx, http.MethodDelete, "connections/"+url.PathEscape(c.Name), "", nil) == nil {
				ended++
			}
		}
		return ended > 0
	})
}
