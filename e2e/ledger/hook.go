package ledger

import (
	"fmt"
	"io"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"
)

// Script is a hook for handlers of kind exec. It finds the file in LEDGER.
const Script = `#!/bin/sh
read -r outcome times delay
echo "start $RSCTL_MESSAGE_ID $RSCTL_ATTEMPT" >>"$LEDGER"
[ "$RSCTL_ATTEMPT" -le "$times" ] || outcome=ack
echo "end $RSCTL_MESSAGE_ID $RSCTL_ATTEMPT $outcome" >>"$LEDGER"
case $outcome in
ack) ;;
after) echo "retry_after $delay" >&4 ;;
*) exit 75 ;;
esac
`

// A Hook is an endpoint for handlers of kind http.
type Hook struct {
	Ledger *Ledger
	stall  atomic.Pointer[func(id string, attempt int)]
}

// Stall makes runs call f between their start and their end; nil ends that.
func (h *Hook) Stall(f func(id string, attempt int)) {
	if f == nil {
		h.stall.Store(nil)
		return
	}
	h.stall.Store(&f)
}

// ServeHTTP runs one attempt.
func (h *Hook) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	id := r.Header.Get("RSCTL-Message-Id")
	attempt, err := strconv.Atoi(r.Header.Get("RSCTL-Attempt"))
	if err != nil || id == "" {
		http.Error(w, "no attempt or no message id", http.StatusInternalServerError)
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the caller is gone: this run never started
	}
	plan, err := ParsePlan(string(body))
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	h.run(w, id, attempt, plan)
}

func (h *Hook) run(w http.ResponseWriter, id string, attempt int, plan Plan) {
	outcome := plan.Answer(attempt)
	err := h.Ledger.write(fmt.Sprintf("start %s %d %d\n", id, attempt, time.Now().UnixMicro()))
	if stall := h.stall.Load(); err == nil && stall != nil {
		(*stall)(id, attempt)
	}
	if err == nil {
		err = h.Ledger.write(fmt.Sprintf("end %s %d %s\n", id, attempt, outcome))
	}
	switch {
	case err != nil: // an answer without its line would look like a loss
		http.Error(w, err.Error(), http.StatusInternalServerError)
	case outcome == After:
		w.Header().Set("RSCTL-Outcome", "retry_after "+plan.Delay.String())
	case outcome == Retry:
		w.WriteHeader(http.StatusServiceUnavailable)
	default:
		_, _ = io.WriteString(w, "ok") // a reply, where one is asked for
	}
}
