package broker

import (
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rsctl/rsctl/pkg/spec"
)

// answerWithin is how long one of several addresses may take to show a sign of
// life, while others have not been tried.
const answerWithin = time.Second

// errNoAnswer marks an address that was silent.
var errNoAnswer = errors.New("no answer in time")

// dialAny tries the addresses in random order, so that many processes spread over
// the nodes of a cluster. One that is silent is given up soon; only when no other
// takes the connection does it get as much time as if it were alone.
func dialAny(ctx context.Context, b spec.Broker, all []spec.Text, name string) (*amqp.Connection, error) {
	order := rand.Perm(len(all))
	errs := make([]error, len(all))
	for _, i := range order {
		conn, err := dialURL(ctx, b, all[i].Value, name, answerWithin)
		if err == nil || ctx.Err() != nil {
			return conn, err
		}
		errs[i] = err
	}
	for _, i := range order {
		if !errors.Is(errs[i], errNoAnswer) {
			continue
		}
		conn, err := dialURL(ctx, b, all[i].Value, name, connectTimeout)
		if err == nil || ctx.Err() != nil {
			return conn, err
		}
		errs[i] = err
	}
	return nil, &noneError{errs}
}

// noneError says why none of several addresses takes a connection. It is a
// Refusal when each of them is: otherwise trying again may help.
type noneError struct{ errs []error }

func (e *noneError) Error() string {
	var lines []string
	for _, err := range e.errs {
		lines = append(lines, err.Error())
	}
	return "none of broker.urls takes the connection: " + strings.Join(lines, "; ")
}

func (e *noneError) Unwrap() []error {
	for _, err := range e.errs {
		var r *Refusal
		if !errors.As(err, &r) {
			return nil
		}
	}
	return e.errs
}

// LoginRefused reports whether err of [Dial] says that the broker does not take
// the user with this password or certificate; of several addresses one is enough.
func LoginRefused(err error) bool {
	var none *noneError
	if errors.As(err, &none) {
		for _, err := range none.errs {
			if LoginRefused(err) {
				return true
			}
		}
		return false
	}
	var r *Refusal
	return errors.As(err, &r) && r.Login
}
