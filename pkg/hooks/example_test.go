package hooks_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/rsctl/rsctl/pkg/hooks"
)

// What a handler in Go answers: an outcome, an error that fails the attempt, or one that
// says that the message is not to blame.
func ExampleFunc() {
	mail := hooks.Func(func(_ context.Context, m hooks.Message) (hooks.Outcome, error) {
		switch string(m.Body) {
		case "":
			return hooks.Outcome{Verdict: hooks.Drop, Reason: "there is no address"}, nil
		case "slow down":
			return hooks.Outcome{Verdict: hooks.RetryAfter, Delay: time.Minute}, nil
		case "greylisted":
			return hooks.Outcome{}, errors.New("450 try again")
		case "server down":
			return hooks.Outcome{}, &hooks.UnavailableError{Target: "mail.example:25", Err: errors.New("connection refused")}
		}
		return hooks.Outcome{Verdict: hooks.Ack}, nil
	})
	for _, body := range []string{"ada@example.org", "", "slow down", "greylisted", "server down"} {
		o, err := mail.Handle(context.Background(), hooks.Message{Body: []byte(body)})
		switch {
		case errors.Is(err, hooks.ErrUnavailable):
			fmt.Println("the queue pauses:", err)
		case err != nil:
			fmt.Println("a failed attempt:", err)
		default:
			fmt.Printf("%s %s %q\n", o.Verdict, o.Delay, o.Reason)
		}
	}
	// Output:
	// ack 0s ""
	// drop 0s "there is no address"
	// retry_after 1m0s ""
	// a failed attempt: 450 try again
	// the queue pauses: mail.example:25: connection refused
}
