package kinds

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"syscall"

	"github.com/rsctl/rsctl/pkg/hooks"
)

// HandleBatch implements [hooks.BatchHook]: one process for the messages, which
// gets a line of JSON for each.
func (c *command) HandleBatch(ctx context.Context, ms []hooks.Message) ([]hooks.Outcome, error) {
	if ctx.Err() != nil {
		return forAll(hooks.Outcome{Reason: stopReason(ctx, c.h.Timeout)}, len(ms)), nil
	}
	e, err := c.run(ctx, c.batchInput(ms))
	switch {
	case err != nil:
		return nil, err
	case e.stopped != "":
		return forAll(hooks.Outcome{Reason: e.stopped}, len(ms)), nil
	}
	return c.batchOutcomes(e.status, e.running, len(ms)), nil
}

// batchInput is what the process gets for ms. Its environment holds what is the
// same for all of them.
func (c *command) batchInput(ms []hooks.Message) *input {
	stdin := payload{buf: make([]byte, 0, batchSize(ms))}
	stdin.messages(ms, '\n')
	stdin.buf = append(stdin.buf, '\n')
	return &input{
		stdin:    stdin,
		metadata: rawPayload(appendMetadataList(make([]byte, 0, 512*len(ms)), ms)),
		answer:   min(len(ms)*maxAnswer, maxBatchAnswer),
		env: func(dir string) environ {
			e := environ{vars: make([]string, len(c.env), len(c.env)+6)}
			copy(e.vars, c.env)
			e.set("PWD", dir)
			e.set("RSCTL_QUEUE", ms[0].Queue)
			e.set("RSCTL_MAX_ATTEMPTS", strconv.Itoa(ms[0].MaxAttempts))
			e.set("RSCTL_BATCH_SIZE", strconv.Itoa(len(ms)))
			e.trace(traceOfAll(ms))
			return e
		},
	}
}

// appendMetadataList appends the metadata of each message as a JSON array.
func appendMetadataList(b []byte, ms []hooks.Message) []byte {
	b = append(b, '[')
	for i := range ms {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendMetadata(b, &ms[i])
	}
	return append(b, ']')
}

// batchOutcomes reads the answer to n messages: a line for each, or one for all,
// on descriptor 4, and without any how the process ended.
//
// A process that answers line by line and ends before it is done has written
// fewer, and perhaps one: that one may retry all, but never ack or drop messages
// that nobody has looked at. The exit code can do that for all.
func (c *command) batchOutcomes(status syscall.WaitStatus, r *running, n int) []hooks.Outcome {
	if len(r.answer.buf) == 0 {
		return forAll(c.exitOutcome(status, r), n)
	}
	if len(r.answer.buf) > r.answer.limit {
		return malformedLines(n, fmt.Sprintf("longer than %d bytes", r.answer.limit))
	}
	lines := strings.Split(strings.TrimSuffix(string(r.answer.buf), "\n"), "\n")
	var each []hooks.Outcome
	for _, line := range lines {
		each = append(each, answerLine(line))
	}
	switch {
	case len(each) == n, len(each) == 1 && each[0].Verdict != hooks.Ack && each[0].Verdict != hooks.Drop:
		return hooks.Spread(each, n)
	case status.Exited() && status.ExitStatus() == 0:
		return malformedLines(n, fmt.Sprintf("%d of %d lines", len(lines), n))
	}
	return malformedLines(n, fmt.Sprintf("%d of %d lines, and %s", len(lines), n, joinReason(describeEnd(status), r.stderr.lastLine())))
}

func malformedLines(n int, why string) []hooks.Outcome {
	return forAll(hooks.Outcome{Reason: joinReason("malformed answer on descriptor 4", why)}, n)
}
