package runtime

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"go.uber.org/goleak"

	"github.com/rsctl/rsctl/pkg/hooks"
	"github.com/rsctl/rsctl/pkg/runtime/internal/membroker"
	"github.com/rsctl/rsctl/pkg/settle"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		if err := removeLadder(); err != nil && code == 0 {
			fmt.Fprintln(os.Stderr, "delete the ladder:", err)
			code = 1
		}
		os.Exit(code)
	}))
}

// patience bounds every wait for something that should happen at once, on however
// busy a machine.
const patience = 2 * time.Minute

// brokerURL is the broker that these tests need; without one they fail.
func brokerURL(t *testing.T) string {
	t.Helper()
	url := os.Getenv("RSCTL_AMQP_URL")
	if url == "" {
		t.Fatal("this test needs RabbitMQ: run make test, or set RSCTL_AMQP_URL=amqp://guest:guest@127.0.0.1:5672/")
	}
	return url
}

// bench is a broker, real or in memory, seen by one test, with queues of its own.
type bench struct {
	t       *testing.T
	url     string
	network func(network, addr string) (net.Conn, error)
	memory  *membroker.Broker // nil: a real one
	conn    *amqp.Connection
	ch      *amqp.Channel
	log     *syncBuffer
}

var queueSeq atomic.Int64

// newBench is on the real broker: for tests of what the server does.
func newBench(t *testing.T) *bench {
	t.Helper()
	return newBenchOn(t, brokerURL(t), amqp.DefaultDial(patience))
}

func newBenchOn(t *testing.T, url string, network func(network, addr string) (net.Conn, error)) *bench {
	t.Helper()
	b := &bench{t: t, url: url, network: network, log: &syncBuffer{}}
	conn, err := b.connect(amqp.Config{})
	if err != nil {
		t.Fatalf("connect: %v", err)
	}
	b.conn = conn
	b.ch = b.channel()
	t.Cleanup(func() {
		_ = conn.Close()
		if t.Failed() {
			t.Logf("runtime log:\n%s", b.log.String())
		}
	})
	return b
}

// inMemory runs a test of what the runtime does, in virtual time and on a broker
// in memory of each series that counts in a way of its own.
func inMemory(t *testing.T, test func(t *testing.T, b *bench)) {
	t.Helper()
	for _, s := range []membroker.Series{membroker.V310, membroker.V40, membroker.V43} {
		t.Run(fmt.Sprintf("%d.%d", s.Major, s.Minor), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				broker := membroker.New(s)
				t.Cleanup(broker.Close)
				b := newBenchOn(t, membroker.URL, broker.Connect)
				b.memory = broker
				test(t, b)
			})
		})
	}
}

func (b *bench) connect(cfg amqp.Config) (*amqp.Connection, error) {
	if cfg.Dial == nil {
		cfg.Dial = b.network
	}
	if cfg.Heartbeat == 0 {
		cfg.Heartbeat = 10 * time.Second
	}
	return amqp.DialConfig(b.url, cfg)
}

func (b *bench) channel() *amqp.Channel {
	b.t.Helper()
	ch, err := b.conn.Channel()
	if err != nil {
		b.t.Fatalf("open a channel: %v", err)
	}
	return ch
}

// queue declares a queue with a name of its own that is deleted after the test.
func (b *bench) queue(kind settle.Type, args amqp.Table) string {
	b.t.Helper()
	name := fmt.Sprintf("rt-%d-%d-%d", os.Getpid(), time.Now().UnixNano()%1e9, queueSeq.Add(1))
	b.declare(name, kind, args)
	return name
}

func (b *bench) declare(name string, kind settle.Type, args amqp.Table) {
	b.t.Helper()
	all := amqp.Table{"x-queue-type": string(kind)}
	for k, v := range args {
		all[k] = v
	}
	if _, err := b.channel().QueueDeclare(name, true, false, false, false, all); err != nil {
		b.t.Fatalf("declare %s: %v", name, err)
	}
	b.t.Cleanup(func() { b.delete(name) })
}

func (b *bench) delete(name string) {
	conn, err := b.connect(amqp.Config{})
	if err != nil {
		b.t.Errorf("connect to delete %s: %v", name, err)
		return
	}
	defer conn.Close()
	if ch, err := conn.Channel(); err == nil {
		_, _ = ch.QueueDelete(name, false, false, false)
	}
}

func (b *bench) publish(queue string, p amqp.Publishing) {
	b.t.Helper()
	b.publishTo("", queue, p)
}

func (b *bench) publishTo(exchange, key string, p amqp.Publishing) {
	b.t.Helper()
	ch := b.channel()
	defer ch.Close()
	if err := ch.Confirm(false); err != nil {
		b.t.Fatalf("confirm mode: %v", err)
	}
	dc, err := ch.PublishWithDeferredConfirm(exchange, key, true, false, p)
	if err != nil || !dc.Wait() {
		b.t.Fatalf("publish to %q %q: %v", exchange, key, err)
	}
}

// ready is the number of messages ready in a queue; -1 when there is no queue.
func (b *bench) ready(queue string) int {
	b.t.Helper()
	ch := b.channel()
	defer ch.Close()
	q, err := ch.QueueDeclarePassive(queue, true, false, false, false, nil)
	if err != nil {
		return -1
	}
	return q.Messages
}

// get takes one message out of a queue, waiting for it.
func (b *bench) get(queue string) amqp.Delivery {
	b.t.Helper()
	var d amqp.Delivery
	b.eventually("a message in "+queue, func() bool {
		got, ok, err := b.ch.Get(queue, true)
		if err != nil {
			b.t.Fatalf("get from %s: %v", queue, err)
		}
		d = got
		return ok
	})
	return d
}

// eventually waits until cond is true.
func (b *bench) eventually(what string, cond func() bool) {
	b.t.Helper()
	deadline := time.Now().Add(patience)
	for !cond() {
		if time.Now().After(deadline) {
			b.t.Fatalf("waited %v for %s", patience, what)
		}
		time.Sleep(10 * time.Millisecond) // polls a broker, which cannot tell us
	}
}

// config is a Config for queues that logs into the bench.
func (b *bench) config(queues ...Queue) Config {
	for i := range queues {
		q := &queues[i]
		q.Concurrency = max(q.Concurrency, 1)
		if q.Prefetch == 0 {
			q.Prefetch = 2 * q.Concurrency
		}
	}
	return Config{
		Dial: func(_ context.Context, purpose string) (*amqp.Connection, error) {
			return b.connect(amqp.Config{Properties: amqp.Table{"connection_name": b.t.Name() + "/" + purpose}})
		},
		Queues: queues,
		Log:    slog.New(slog.NewTextHandler(b.log, &slog.HandlerOptions{Level: slog.LevelDebug})),
	}
}

// running is a Run in the background.
type running struct {
	t          *testing.T
	drain      context.CancelFunc // first signal
	kill       context.CancelFunc // second signal
	done       chan error
	once       sync.Once
	result     error
	stopIntake context.Context
}

// start runs cfg until the test ends or stop is called.
func (b *bench) start(cfg Config) *running {
	b.t.Helper()
	return b.startBy(func(intake, work context.Context) error { return Run(intake, work, cfg) })
}

func (b *bench) startBy(run func(intake, work context.Context) error) *running {
	b.t.Helper()
	work, kill := context.WithCancel(context.Background())
	intake, drain := context.WithCancel(work)
	r := &running{t: b.t, drain: drain, kill: kill, done: make(chan error, 1), stopIntake: intake}
	go func() { r.done <- run(intake, work) }()
	b.t.Cleanup(func() { _ = r.stop() })
	return r
}

// stop drains and returns what Run returned.
func (r *running) stop() error {
	r.t.Helper()
	r.drain()
	defer r.kill()
	return r.wait()
}

// stopShort is stop where the drain cannot come to its end.
func (r *running) stopShort() {
	r.t.Helper()
	if err := r.stop(); !errors.Is(err, ErrCutShort) {
		r.t.Errorf("Run() = %v, want %v", err, ErrCutShort)
	}
}

func (r *running) wait() error {
	r.t.Helper()
	r.once.Do(func() {
		select {
		case r.result = <-r.done:
		case <-time.After(patience):
			r.t.Error("Run did not return")
		}
	})
	return r.result
}

// call is one run of a hook.
type call struct {
	hooks.Message
	at time.Time
}

// recorder is a hook that answers by a function of the message and keeps what it
// was called with.
type recorder struct {
	mu    sync.Mutex
	calls []call
	reply func(m hooks.Message) hooks.Outcome
}

func (r *recorder) Handle(_ context.Context, m hooks.Message) (hooks.Outcome, error) {
	r.mu.Lock()
	r.calls = append(r.calls, call{m, time.Now()})
	r.mu.Unlock()
	return r.reply(m), nil
}

func (r *recorder) seen() []call {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]call(nil), r.calls...)
}

func always(v hooks.Verdict) func(hooks.Message) hooks.Outcome {
	return func(hooks.Message) hooks.Outcome { return hooks.Outcome{Verdict: v, Reason: "as told"} }
}

// syncBuffer is a log that may be written and read at the same time.
type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *syncBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *syncBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

func (s *syncBuffer) has(text string) bool { return strings.Contains(s.String(), text) }

func (s *syncBuffer) count(text string) int { return strings.Count(s.String(), text) }
