package cli

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/rogpeppe/go-internal/testscript"
)

// poll asks until ok, or patience is over.
func poll(ok func() bool) bool {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	look := time.NewTicker(20 * time.Millisecond)
	defer look.Stop()
	for !ok() {
		select {
		case <-look.C:
		case <-ctx.Done():
			return false
		}
	}
	return true
}

var boundAddress = regexp.MustCompile(`serving /healthz, /readyz and /metrics","address":"([^"]+)"`)

// cmdAddress waits for the address in a JSON log and puts it into $ADDR:
// "address run.log".
func cmdAddress(ts *testscript.TestScript, _ bool, args []string) {
	if !poll(func() bool {
		text, _ := os.ReadFile(ts.MkAbs(args[0]))
		m := boundAddress.FindSubmatch(text)
		if m == nil {
			return false
		}
		ts.Setenv("ADDR", string(m[1]))
		return true
	}) {
		ts.Fatalf("no address in %s:\n%s", args[0], ts.ReadFile(args[0]))
	}
}

// cmdAnswers waits until $ADDR answers a path with a status and a text that
// matches: "answers 503 /readyz 'is paused'".
func cmdAnswers(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: answers STATUS PATH REGEXP")
	}
	want := regexp.MustCompile("(?m)" + args[2])
	var got, text string
	if !poll(func() bool {
		got, text = fetch("http://" + ts.Getenv("ADDR") + args[1])
		return got == args[0] && want.MatchString(text)
	}) {
		ts.Fatalf("%s answers %s:\n%s\nwant %s and %s", args[1], got, text, args[0], args[2])
	}
}

// fetch returns the status and the body, or the error as the body.
func fetch(url string) (status, text string) {
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: patience}
	r, err := client.Get(url)
	if err != nil {
		return "", err.Error()
	}
	defer r.Body.Close()
	b, err := io.ReadAll(r.Body)
	if err != nil {
		return "", err.Error()
	}
	return strconv.Itoa(r.StatusCode), string(b)
}

func TestATakenAddressMattersOnlyWhenItWasAskedFor(t *testing.T) {
	t.Parallel()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ln.Close() })
	flag := func(given bool) listenFlag {
		return listenFlag{addr: ln.Addr().String(), given: func() bool { return given }}
	}
	for _, tt := range []struct {
		name  string
		given bool
		code  int
		lines int
	}{
		{"the default is gone without, with one warning", false, exitOK, 1},
		{"an address of one's own is a failure", true, exitFailure, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			a := testApp()
			stop, err := flag(tt.given).page([]string{"q"}, nil).serve(t.Context(), a.warnings())
			if got := exitCode(err); got != tt.code {
				t.Errorf("exit code %d (%v), want %d", got, err, tt.code)
			}
			if log := fmt.Sprint(a.sys.Err); strings.Count(log, "\n") != tt.lines {
				t.Errorf("the log has not %d lines:\n%s", tt.lines, log)
			}
			if err != nil && !strings.Contains(hintOf(err), "--listen") {
				t.Errorf("the hint %q does not name the flag", hintOf(err))
			}
			if err == nil {
				stop()
			}
		})
	}
}

func TestNoAddressIsNoServer(t *testing.T) {
	t.Parallel()
	a := testApp()
	p := listenFlag{}.page([]string{"q"}, nil)
	stop, err := p.serve(t.Context(), a.warnings())
	if o := p.observer(); o != nil || err != nil || fmt.Sprint(a.sys.Err) != "" {
		t.Fatalf("got %v, %v and the log %q; want nothing", p, err, a.sys.Err)
	}
	stop()
}

// relay passes connections to the broker while it is open. It keeps its port, which
// somebody else could take, and hangs up on everybody while it is shut.
type relay struct {
	upstream string
	ln       net.Listener

	mu     sync.Mutex
	isOpen bool
	frozen chan struct{} // not nil while nothing passes
	conns  []net.Conn
	wg     sync.WaitGroup
}

// relayBroker puts an open relay before the broker of the tests, and returns the
// URL through it.
func relayBroker(t *testing.T) (*relay, string) {
	t.Helper()
	u, err := url.Parse(brokerURL(t))
	if err != nil {
		t.Fatal("RSCTL_AMQP_URL is not a URL")
	}
	r := newRelay(t, u.Host)
	r.open()
	u.Host = r.ln.Addr().String()
	return r, u.String()
}

func newRelay(t *testing.T, upstream string) *relay {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &relay{upstream: upstream, ln: ln}
	r.wg.Go(func() {
		for {
			in, err := ln.Accept()
			if err != nil {
				return
			}
			r.join(in)
		}
	})
	t.Cleanup(func() {
		_ = ln.Close()
		r.shut()
		r.wg.Wait()
	})
	return r
}

func (r *relay) open() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.isOpen = true
}

func (r *relay) join(in net.Conn) {
	out, err := net.Dial("tcp", r.upstream)
	if err != nil {
		_ = in.Close()
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.isOpen {
		_, _ = in.Close(), out.Close()
		return
	}
	r.conns = append(r.conns, in, out)
	for _, way := range [][2]net.Conn{{in, out}, {out, in}} {
		r.wg.Go(func() {
			_, _ = io.Copy(frozenWhile{way[0], r}, way[1])
			_ = way[0].Close()
			_ = way[1].Close()
		})
	}
}

// freeze lets nothing pass any more, until the relay is shut.
func (r *relay) freeze() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.frozen = make(chan struct{})
}

type frozenWhile struct {
	net.Conn
	r *relay
}

func (w frozenWhile) Write(p []byte) (int, error) {
	w.r.mu.Lock()
	frozen := w.r.frozen
	w.r.mu.Unlock()
	if frozen != nil {
		<-frozen
	}
	return w.Conn.Write(p)
}

// shut hangs up on new connections and cuts the others.
func (r *relay) shut() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.isOpen = false
	for _, c := range r.conns {
		_ = c.Close()
	}
	r.conns = nil
	if r.frozen != nil {
		close(r.frozen)
		r.frozen = nil
	}
}

func TestReadyzTellsTheTruthAboutAnOutage(t *testing.T) {
	t.Parallel()
	r, relayed := relayBroker(t)
	queue := "cli-outage-" + strings.ToLower(rand.Text()[:8])
	onQueue(t, func(ch *amqp.Channel) error {
		_, err := ch.QueueDeclare(queue, true, false, false, false, amqp.Table{"x-queue-type": "classic"})
		return err
	})
	t.Cleanup(func() { deleteQueue(t, queue) })

	base, stop := startListening(t, relayed, queue)
	ready := func(want bool, reason string) {
		t.Helper()
		var got, text string
		if !poll(func() bool {
			got, text = fetch(base + "/readyz")
			return (got == "200") == want && strings.Contains(text, reason)
		}) {
			t.Fatalf("/readyz answers %s: %s; want ready: %v, with %q", got, text, want, reason)
		}
		if got, _ := fetch(base + "/healthz"); got != "200" {
			t.Errorf("/healthz answers %s", got)
		}
	}
	ready(true, "ready")
	r.shut()
	ready(false, "no connection to the broker: ")
	r.open()
	ready(true, "ready")
	for _, want := range []string{`rsctl_reconnects_total{connection="consume"} 1`, `rsctl_queue_consuming{queue="` + queue + `"} 1`} {
		if _, text := fetch(base + "/metrics"); !strings.Contains(text, want+"\n") {
			t.Errorf("no %s in\n%s", want, text)
		}
	}
	stop()
}

// startListening starts "rsctl run" of one queue and returns where it serves.
func startListening(t *testing.T, broker, queue string) (base string, stop func()) {
	t.Helper()
	dir := t.TempDir()
	spec := fmt.Sprintf("version: 1\nbroker: {url: %q}\nqueues:\n  - {name: %s, type: classic, handler: {exec: [cat]}}\n", broker, queue)
	if err := os.WriteFile(filepath.Join(dir, "queues.yaml"), []byte(spec), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*patience) // a hang is a failure, soon
	t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, "rsctl", "-f", filepath.Join(dir, "queues.yaml"), "run", "--listen", "127.0.0.1:0")
	log, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	dec := json.NewDecoder(log)
	for base == "" {
		var line struct{ Address string }
		if err := dec.Decode(&line); err != nil {
			t.Fatalf("the log ends before the address: %v", err)
		}
		base = line.Address
	}
	rest := make(chan struct{})
	go func() { _, _ = io.Copy(io.Discard, log); close(rest) }()
	return "http://" + base, func() {
		t.Helper()
		if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
			t.Error(err)
		}
		<-rest
		if err := cmd.Wait(); err != nil {
			t.Errorf("the run ended with %v", err)
		}
	}
}
