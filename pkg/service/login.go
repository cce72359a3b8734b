package service

import (
	"context"
	"fmt"
	"sync"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rsctl/rsctl/pkg/spec"
	"github.com/rsctl/rsctl/pkg/topology/broker"
)

// dialer opens one connection of a run.
type dialer = func(ctx context.Context, purpose string) (*amqp.Connection, error)

// logins ends a run whose login has worked once and is then refused, on every
// connection that is tried, for as long as limit: a supervisor can start it anew,
// with what it should log in with now. A limit of 0 never ends it. Anything but a
// refused login starts the time afresh.
type logins struct {
	limit  time.Duration
	giveUp context.CancelCauseFunc
	now    func() time.Time

	mu     sync.Mutex
	worked bool
	since  time.Time // of the first refusal in a row; zero: there is none
}

func newLogins(limit time.Duration, giveUp context.CancelCauseFunc) *logins {
	return &logins{limit: limit, giveUp: giveUp, now: time.Now}
}

// watch returns dial with an eye on how the login goes.
func (p *logins) watch(dial dialer) dialer {
	return func(ctx context.Context, purpose string) (*amqp.Connection, error) {
		conn, err := dial(ctx, purpose)
		p.saw(err)
		return conn, err
	}
}

func (p *logins) saw(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.now()
	switch {
	case err == nil:
		p.worked, p.since = true, time.Time{}
	case !broker.LoginRefused(err):
		p.since = time.Time{}
	case !p.worked || p.limit == 0:
	case p.since.IsZero():
		p.since = now
	case now.Sub(p.since) >= p.limit:
		p.giveUp(&LoginError{After: p.limit, Err: err})
	}
}

// LoginError is why [Service.Run] has given up: a login that has worked has been refused
// for Options.LoginPatience.
type LoginError struct {
	After time.Duration
	Err   error // the last refusal
}

func (e *LoginError) Error() string {
	return fmt.Sprintf("the login that has worked has been refused for %s: %v", spec.FormatDuration(e.After), e.Err)
}

// Unwrap returns the last refusal.
func (e *LoginError) Unwrap() error { return e.Err }

// Hint says what to do.
func (e *LoginError) Hint() string {
	return "check user name and password, or the client certificate"
}
