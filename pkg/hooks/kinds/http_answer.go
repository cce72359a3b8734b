package kinds

import (
	"context"
	"net/http"

	"github.com/rsctl/rsctl/pkg/hooks"
)

// An outgoing request is what differs from one POST to the next.
type outgoing struct {
	fields []field
	body   []byte
	last   bool // its connection is closed after the answer
}

// An answer is a response with what is known of its request. It has to be
// closed.
type answer struct {
	*http.Response
	trip *trip // nil: over a wire
	cut  bool  // over a wire: the request was not sent in full
}

// trusted is what o is worth. Nobody can have done what they have not read, so a
// success that came before the request had been sent in full is a failure; a
// refusal may come early.
func (a *answer) trusted(ctx context.Context, o hooks.Outcome) hooks.Outcome {
	if o.Verdict != hooks.Ack || a.whole(ctx) {
		return o
	}
	return hooks.Outcome{Reason: joinReason(statusLine(a.Response), "answered before the request had been sent in full")}
}

// whole reports whether the request had been sent in full when the answer came.
func (a *answer) whole(ctx context.Context) bool {
	if a.trip == nil {
		return !a.cut
	}
	return a.trip.whole(ctx)
}

func (a *answer) close() {
	a.Body.Close()
	if a.trip != nil {
		a.trip.end()
	}
}
