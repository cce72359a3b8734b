package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/rsctl/rsctl/e2e/internal/proxy"
	"github.com/rsctl/rsctl/e2e/internal/vhost"
	"github.com/rsctl/rsctl/e2e/ledger"
)

// backlog is how many ready messages the load keeps in each queue.
const backlog = 400

// longDrain is longer than a held copy takes to be tried again.
const longDrain = 40 * time.Second

// A scenario is one fault's virtual host, load, hooks and processes.
type scenario struct {
	venue
	fault  fault
	binary string
	host   *vhost.Host
	urls   []string // of the virtual host, on every node
	proxy  *proxy.Proxy
	ledger *ledger.Ledger
	hook   *ledger.Hook
	server *http.Server // of the hook
	dir    string
	env    []string

	user      string               // whom rsctl logs in as, when not the broker's own
	deleted   map[string]time.Time // when a queue was last declared again after it was deleted
	taken     []string             // dead letters that were taken out on the way
	swept     map[string]bool      // spent when a dead-letter queue was deleted
	processes []*process
	drain     time.Duration // how long a stop may take
	ended     int           // processes that a strike has ended
	closers   []func() error
	rng       *rand.Rand
}

// newStage makes everything but the processes and the load.
func newStage(ctx context.Context, v venue, f fault, binary string) (_ *scenario, err error) {
	s := &scenario{venue: v, fault: f, binary: binary, drain: longDrain, rng: rand.New(rand.NewPCG(rand.Uint64(), 0))}
	defer func() {
		if err != nil {
			s.close()
		}
	}()
	name := fmt.Sprintf("chaos-%08x", rand.Uint32())
	if s.host, err = vhost.CreateAt(ctx, v.URL, v.management, name); err != nil {
		return nil, err
	}
	s.onClose(func() error { return s.host.Remove(context.WithoutCancel(ctx)) })
	if s.urls, err = v.inVHost(name); err != nil {
		return nil, err
	}
	if err := s.openProxy(ctx); err != nil {
		return nil, err
	}
	if s.dir, err = os.MkdirTemp("", "rsctl-chaos-"); err != nil {
		return nil, err
	}
	s.onClose(func() error { return os.RemoveAll(s.dir) })
	if s.ledger, err = ledger.Open(s.dir); err != nil {
		return nil, err
	}
	s.onClose(s.ledger.Close)
	if err := s.serveHook(); err != nil {
		return nil, err
	}
	return s, s.apply()
}

func (s *scenario) onClose(f func() error) { s.closers = append(s.closers, f) }

// close ends and removes everything, in the opposite order.
func (s *scenario) close() {
	for _, p := range s.processes {
		p.kill()
	}
	for i := len(s.closers) - 1; i >= 0; i-- {
		if err := s.closers[i](); err != nil {
			fmt.Fprintln(os.Stderr, "chaos: clean up:", err)
		}
	}
}

// openProxy puts a proxy before every node, for rsctl and nobody else.
func (s *scenario) openProxy(ctx context.Context) (err error) {
	urls := s.urls
	if s.fault.login != nil {
		url, err := s.fault.login(ctx, s)
		if err != nil {
			return err
		}
		urls = []string{url}
	}
	if s.proxy, err = proxy.New(urls...); err != nil {
		return err
	}
	s.onClose(func() error { s.proxy.Close(); return nil })
	return nil
}

// serveHook starts the endpoint of the http handlers.
func (s *scenario) serveHook() error {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	s.hook = &ledger.Hook{Ledger: s.ledger}
	s.server = &http.Server{Handler: s.hook, ReadHeaderTimeout: 10 * time.Second}
	var serving sync.WaitGroup
	serving.Go(func() { s.server.Serve(ln) }) //nolint:errcheck // it ends by Close
	s.onClose(func() error { err := s.server.Close(); serving.Wait(); return err })
	s.env = []string{"AMQP_URL=" + s.proxy.URL + s.fault.query, "LEDGER=" + s.ledger.Path(), "HOOK_URL=http://" + ln.Addr().String()}
	return nil
}

// apply writes the spec and declares it as the broker's own user.
func (s *scenario) apply() error {
	files := map[string]string{"queues.yaml": specText(s.fault.queues), "hook.sh": ledger.Script}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(s.dir, name), []byte(text), 0o755); err != nil {
			return err
		}
	}
	p, err := startProcess(s.binary, append(s.env, "AMQP_URL="+s.host.URL), "-f", s.spec(), "apply", "--timeout", patience.String())
	if err != nil {
		return err
	}
	<-p.done
	if code := p.cmd.ProcessState.ExitCode(); code != 0 {
		return fmt.Errorf("rsctl apply: exit code %d\n%s", code, p.tail())
	}
	return nil
}

func (s *scenario) spec() string { return filepath.Join(s.dir, "queues.yaml") }

// run starts one more rsctl run.
func (s *scenario) run() error {
	p, err := startProcess(s.binary, s.env, "-f", s.spec(), "run", "--shutdown-timeout", s.drain.String(), "--log-format", "text")
	if err != nil {
		return err
	}
	s.processes = append(s.processes, p)
	return nil
}

// catchUp waits until the innocent queues have caught up: how late their
// messages are is said of one strike, not of many that follow each other closely.
func catchUp(ctx context.Context, s *scenario) error {
	var names []string
	for _, q := range s.fault.queues {
		if q.innocent {
			names = append(names, q.name)
		}
	}
	if names == nil {
		return nil
	}
	return s.whileRunning(ctx, "the innocent queues to catch up", func() bool {
		n, err := s.readyIn(names...)
		return err == nil && n == 0
	})
}
