package cli

import (
	"context"
	"fmt"
	"sync"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rsctl/rsctl/pkg/topology/broker"
)

// defaultLoginPatience leaves whoever replaces a password the time to do it on
// both sides.
const defaultLoginPatience = 5 * time.Minute

// dialer opens one connection of a run.
type dialer = func(ctx context.Context, purpose string) (*amqp.Connection, error)

// loginPatience ends a run whose login has worked once and is then refused, on
// every connection that is tried, for as long as limit: a supervisor can start it
// anew, with what it should log in with now. A limit of 0 never ends it. Anything
// but a refused login starts the time afresh.
type loginPatience struct {
	limit  time.Duration
	giveUp context.CancelCauseFunc
	now    func() time.Time

	mu     sync.Mutex
	worked bool
	since  time.Time // of the first refusal in a row; zero: there is none
}

func newLoginPatience(limit time.Duration, giveUp context.CancelCauseFunc) *loginPatience {
	return &loginPatience{limit: limit, giveUp: giveUp, now: time.Now}
}

// watch returns dial with an eye on how the login goes.
func (p *loginPatience) watch(dial dialer) dialer {
	return func(ctx context.Context, purpose string) (*amqp.Connection, error) {
		conn, err := dial(ctx, purpose)
		p.saw(err)
		return conn, err
	}
}

func (p *loginPatience) saw(err error) {
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
		p.giveUp(&loginError{after: p.limit, err: err})
	}
}

// loginError is why a run gives up.
type loginError struct {
	after time.Duration
	err   error
}

func (e *loginError) Error() string {
	return fmt.Sprintf("the login that has worked has been refused for %s: %v", short(e.after), e.err)
}

func (e *loginError) Unwrap() error { return e.err }

func (e *loginError) Hint() string {
	return "check user name and password, or the client certificate; --login-patience says how long a refused login is tried again"
}
