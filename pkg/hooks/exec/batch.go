package exec

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"syscall"

	"github.com/rsctl/rsctl/pkg/hooks"
	"github.com/rsctl/rsctl/pkg/hooks/internal/message"
	"github.com/rsctl/rsctl/pkg/hooks/internal/process"
)

// HandleBatch implements [hooks.BatchHook]: one process for the messages, which
// gets a line of JSON for each.
func (c *command) HandleBatch(ctx context.Context, ms []hooks.Message) ([]hooks.Outcome, error) {
	if ctx.Err() != nil {
		return message.ForAll(hooks.Outcome{Reason: message.StopReason(ctx, c.h.Timeout)}, len(ms)), nil
	}
	e, err := c.run(ctx, c.batchInput(ms))
	switch {
	case err != nil:
		return nil, err
	case e.stopped != "":
		return message.ForAll(hooks.Outcome{Reason: e.stopped}, len(ms)), nil
	}
	return c.batchOutcomes(e.status, e.running, len(ms)), nil
}

// batchInput is what the process gets for ms. Its environment holds what is the
// same for all of them.
func (c *command) batchInput(ms []hooks.Message) *input {
	return &input{
		stdin:    message.Lines(ms),
		metadata: message.Raw(message.AppendMetadataList(make([]byte, 0, 512*len(ms)), ms)),
		answer:   min(len(ms)*maxAnswer, message.MaxBatchAnswer),
		env: func(dir string) environ {
			e := environ{vars: make([]string, len(c.cmd.Env), len(c.cmd.Env)+6)}
			copy(e.vars, c.cmd.Env)
			e.set("PWD", dir)
			e.set("RSCTL_QUEUE", ms[0].Queue)
			e.set("RSCTL_MAX_ATTEMPTS", strconv.Itoa(ms[0].MaxAttempts))
			e.set("RSCTL_BATCH_SIZE", strconv.Itoa(len(ms)))
			e.trace(message.TraceOfAll(ms))
			return e
		},
	}
}

// batchOutcomes reads the answer to n messages: a line for each, or one for all,
// on descriptor 4, and without any how the process ended.
//
// A process that answers line by line and ends before it is done has written
// fewer, and perhaps one: that one may retry all, but never ack or drop messages
// that have not been looked at. The exit code can do that for all.
func (c *command) batchOutcomes(status syscall.WaitStatus, r *running, n int) []hooks.Outcome {
	if len(r.answer.Bytes()) == 0 {
		return message.ForAll(c.exitOutcome(status, r), n)
	}
	if r.answer.Overflown() {
		return malformedLines(n, fmt.Sprintf("longer than %d bytes", r.answer.Limit))
	}
	lines := strings.Split(strings.TrimSuffix(string(r.answer.Bytes()), "\n"), "\n")
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
	return malformedLines(n, fmt.Sprintf("%d of %d lines, and %s", len(lines), n, message.JoinReason(process.DescribeEnd(status), r.stderr.LastLine())))
}

func malformedLines(n int, why string) []hooks.Outcome {
	return message.ForAll(hooks.Outcome{Reason: message.JoinReason("malformed answer on descriptor 4", why)}, n)
}
