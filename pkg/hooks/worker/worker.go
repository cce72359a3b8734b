// Package worker is the kind of hook that hands deliveries to processes that stay:
// a line of JSON for each on their standard input, and one back on their standard
// output. A process that breaks this protocol, or has a call that runs out of time,
// is ended, and replaced when the next call comes.
package worker

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/rsctl/rsctl/pkg/hooks"
	"github.com/rsctl/rsctl/pkg/hooks/internal/message"
	"github.com/rsctl/rsctl/pkg/hooks/internal/process"
	"github.com/rsctl/rsctl/pkg/hooks/setup"
	"github.com/rsctl/rsctl/pkg/spec"
)

// probeFor is how long Probe watches a process that it has started. Tests make
// it longer where a process is known to end.
const probeFor = time.Second

// workers hands deliveries to processes that stay. A process gets one line of
// JSON per delivery on its standard input and answers with one line on its
// standard output.
type workers struct {
	h     *spec.Handler
	cmd   *process.Command
	pool  *pool
	watch time.Duration // of Probe
}

// New builds the hook of a worker handler. It starts nothing before the first
// delivery. It has to be closed.
func New(h *spec.Handler, o setup.Options) (hooks.Hook, error) {
	o = o.WithDefaults(h.Dir)
	cmd, err := process.New(h, o)
	if err != nil {
		return nil, err
	}
	processes := h.Processes
	if processes <= 0 {
		processes = o.Concurrency
	}
	p := &pool{cmd: cmd, queue: o.Queue, grace: h.KillGrace, endFor: endFor, pipeline: max(h.Pipeline, 1)}
	for range processes {
		p.slots = append(p.slots, &slot{})
	}
	return &workers{h: h, cmd: cmd, pool: p, watch: probeFor}, nil
}

// Limit implements [hooks.Limiter]: more calls than that would only wait.
func (w *workers) Limit() int { return len(w.pool.slots) * w.pool.pipeline }

// Handle implements [hooks.Hook]. It returns when the delivery has been
// answered or when the process that had it is gone: after a failure the delivery is
// not worked on any more.
func (w *workers) Handle(ctx context.Context, m hooks.Message) (hooks.Outcome, error) {
	if ctx.Err() != nil {
		return hooks.Outcome{Reason: message.StopReason(ctx, w.h.Timeout)}, nil
	}
	c := newCall()
	defer c.free()
	c.line.Request(&m)
	r := w.answer(ctx, c)
	if r.OfBatch {
		r.Outcome = hooks.Outcome{Reason: "malformed answer: outcomes is for batches"}
	}
	return r.Outcome, r.err
}

// HandleBatch implements [hooks.BatchHook]: the messages are one request.
func (w *workers) HandleBatch(ctx context.Context, ms []hooks.Message) ([]hooks.Outcome, error) {
	if ctx.Err() != nil {
		return hooks.Spread([]hooks.Outcome{{Reason: message.StopReason(ctx, w.h.Timeout)}}, len(ms)), nil
	}
	c := newCall()
	defer c.free()
	c.line.Batch(ms)
	r := w.answer(ctx, c)
	switch {
	case r.err != nil:
		return nil, r.err
	case r.OfBatch:
		return hooks.Spread(r.Each, len(ms)), nil
	}
	return hooks.Spread([]hooks.Outcome{r.Outcome}, len(ms)), nil
}

// answer finds a process that takes c, and another when that one ends without
// having seen it.
func (w *workers) answer(ctx context.Context, c *call) result {
	for {
		s, err := w.pool.acquire(ctx)
		if err != nil {
			return result{err: w.cmd.Unavailable(err)}
		}
		r := w.callProcess(ctx, s, c)
		w.pool.release(s)
		if !r.unread {
			return r
		}
	}
}

// callProcess hands c to the process of s, starting one if there is none, and waits
// until it is answered or the process has ended.
func (w *workers) callProcess(ctx context.Context, s *slot, c *call) result {
	p, err := w.pool.running(ctx, s)
	if err != nil {
		return result{err: w.cmd.Unavailable(err)}
	}
	if !p.submit(c) {
		return result{unread: true}
	}
	select {
	case r := <-c.done:
		return r
	case <-ctx.Done():
	}
	select {
	case r := <-c.done: // at the last moment
		return r
	default:
	}
	why := message.StopReason(ctx, w.h.Timeout)
	p.end(&stopCause{text: "a call " + why, interrupted: errors.Is(ctx.Err(), context.Canceled)})
	<-p.done // nothing works on the delivery any more
	<-c.done
	return failed(message.JoinReason(why, p.stderr.LastLine()))
}

// Check implements [hooks.Checker]: the command exists and may be executed.
func (w *workers) Check(context.Context) error { return w.cmd.Check() }

// Probe implements [hooks.Prober]: a process can be started, stays for a second
// and prints nothing that is no answer. It gets no request.
func (w *workers) Probe(ctx context.Context) error {
	s, err := w.pool.acquire(ctx)
	if err != nil {
		return w.cmd.Unavailable(err)
	}
	defer w.pool.release(s)
	p, err := w.pool.running(ctx, s)
	if err != nil {
		return w.cmd.Unavailable(err)
	}
	watch := time.NewTimer(w.watch)
	defer watch.Stop()
	select {
	case <-p.done:
		return w.cmd.Unavailable(fmt.Errorf("started, and then %s", p.why))
	case <-watch.C:
	case <-ctx.Done():
	}
	return nil
}

// Close implements [hooks.Closer]. The processes get the end of their input, a
// second later SIGTERM, and after kill_grace SIGKILL.
func (w *workers) Close() error {
	w.pool.close()
	return nil
}

// A call is one delivery on its way through the processes. Its result is sent
// exactly once for each process that took it.
type call struct {
	line  message.Payload // the request without its id
	done  chan result
	start int64 // where its line begins in what the process was sent
}

// result is how a process ended with a call.
type result struct {
	message.Answer
	err    error
	unread bool // the process has not seen it; another may try
}

// failed is the end of a call whose process could not finish it.
func failed(reason string) result {
	return result{Answer: message.Answer{Outcome: hooks.Outcome{Reason: reason}}}
}

// keepLine is the largest request whose buffer is used again.
const keepLine = 64 << 10

var calls = sync.Pool{New: func() any { return &call{done: make(chan result, 1)} }}

func newCall() *call {
	c := calls.Get().(*call)
	return c
}

func (c *call) free() {
	c.line.Reset(keepLine)
	calls.Put(c)
}
