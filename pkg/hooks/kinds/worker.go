package kinds

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/rsctl/rsctl/pkg/hooks"
	"github.com/rsctl/rsctl/pkg/spec"
)

// probeFor is how long Probe watches a process that it has started. Tests make
// it longer where a process is known to end.
const probeFor = time.Second

// workers hands deliveries to processes that stay. A process gets one line of
// JSON per delivery on its standard input and answers with one line on its
// standard output.
type workers struct {
	cmd   *command
	pool  *workerPool
	watch time.Duration // of Probe
}

func newWorker(h *spec.Handler, o Options) (hooks.Hook, error) {
	c, err := newCommand(h, o)
	if err != nil {
		return nil, err
	}
	processes := h.Processes
	if processes <= 0 {
		processes = o.Concurrency
	}
	return &workers{cmd: c, pool: newWorkerPool(c, processes, max(h.Pipeline, 1)), watch: probeFor}, nil
}

// Limit implements [hooks.Limiter]: more calls than that would only wait.
func (w *workers) Limit() int { return len(w.pool.slots) * w.pool.pipeline }

// Handle implements [hooks.Hook]. It returns when the delivery has been
// answered or when the process that had it is gone: after a failure nobody
// works on the delivery any more.
func (w *workers) Handle(ctx context.Context, m hooks.Message) (hooks.Outcome, error) {
	if ctx.Err() != nil {
		return hooks.Outcome{Reason: stopReason(ctx, w.cmd.h.Timeout)}, nil
	}
	c := newCall()
	defer c.free()
	c.line.request(&m)
	r := w.answer(ctx, c)
	if r.ofBatch {
		r.outcome = hooks.Outcome{Reason: "malformed answer: outcomes is for batches"}
	}
	return r.outcome, r.err
}

// HandleBatch implements [hooks.BatchHook]: the messages are one request.
func (w *workers) HandleBatch(ctx context.Context, ms []hooks.Message) ([]hooks.Outcome, error) {
	if ctx.Err() != nil {
		return hooks.Spread([]hooks.Outcome{{Reason: stopReason(ctx, w.cmd.h.Timeout)}}, len(ms)), nil
	}
	c := newCall()
	defer c.free()
	c.line.batch(ms)
	r := w.answer(ctx, c)
	switch {
	case r.err != nil:
		return nil, r.err
	case r.ofBatch:
		return hooks.Spread(r.each, len(ms)), nil
	}
	return hooks.Spread([]hooks.Outcome{r.outcome}, len(ms)), nil
}

// answer finds a process that takes c, and another when that one ends without
// having seen it.
func (w *workers) answer(ctx context.Context, c *call) result {
	for {
		s, err := w.pool.acquire(ctx)
		if err != nil {
			return result{err: w.cmd.unavailable(err)}
		}
		r := w.ask(ctx, s, c)
		w.pool.release(s)
		if !r.unread {
			return r
		}
	}
}

// ask hands c to the process of s, starting one if there is none, and waits
// until it is answered or the process has ended.
func (w *workers) ask(ctx context.Context, s *slot, c *call) result {
	p, err := w.pool.running(ctx, s)
	if err != nil {
		return result{err: w.cmd.unavailable(err)}
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
	why := stopReason(ctx, w.cmd.h.Timeout)
	p.end(&stopCause{text: "a call " + why, interrupted: errors.Is(ctx.Err(), context.Canceled)})
	<-p.done // nothing works on the delivery any more
	<-c.done
	return result{outcome: hooks.Outcome{Reason: joinReason(why, p.stderr.lastLine())}}
}

// Check implements [hooks.Checker]: the command exists and may be executed.
func (w *workers) Check(ctx context.Context) error { return w.cmd.Check(ctx) }

// Probe implements [hooks.Prober]: a process can be started, stays for a second
// and prints nothing that is no answer. It gets no request.
func (w *workers) Probe(ctx context.Context) error {
	s, err := w.pool.acquire(ctx)
	if err != nil {
		return w.cmd.unavailable(err)
	}
	defer w.pool.release(s)
	p, err := w.pool.running(ctx, s)
	if err != nil {
		return w.cmd.unavailable(err)
	}
	watch := time.NewTimer(w.watch)
	defer watch.Stop()
	select {
	case <-p.done:
		return w.cmd.unavailable(fmt.Errorf("started, and then %s", p.why))
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
	line  payload // the request without its id
	done  chan result
	start int64 // where its line begins in what the process was sent
}

// result is how a process ended with a call.
type result struct {
	outcome hooks.Outcome
	each    []hooks.Outcome // with ofBatch: of each message
	ofBatch bool
	err     error
	unread  bool // the process has not seen it; another may try
}

// keepLine is the largest request whose buffer is used again.
const keepLine = 64 << 10

var calls = sync.Pool{New: func() any { return &call{done: make(chan result, 1)} }}

func newCall() *call {
	c := calls.Get().(*call)
	return c
}

func (c *call) free() {
	c.line.reset(keepLine)
	calls.Put(c)
}
