package worker

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/rsctl/rsctl/pkg/hooks/internal/hooktest"
	"github.com/rsctl/rsctl/pkg/spec"
)

// workerMode makes the re-executed test binary a worker; its value says what it
// does with each request.
const workerMode = "RSCTL_TEST_WORKER"

// workerRequest is what a worker needs of a request.
type workerRequest struct {
	ID   string `json:"id"`
	Body string `json:"body"`
}

// behaviours are what a worker may do, by mode.
var behaviours = map[string]func(r workerRequest){
	"obey": func(r workerRequest) {
		word, delay, _ := strings.Cut(r.Body, " ")
		say(map[string]string{"id": r.ID, "outcome": word, "delay": delay, "reason": fmt.Sprint("pid ", os.Getpid())})
	},
	"hang":  func(workerRequest) { time.Sleep(time.Minute) },
	"crash": func(workerRequest) { os.Exit(3) },
	"flood stderr": func(r workerRequest) {
		for range 1000 {
			os.Stderr.Write([]byte(strings.Repeat("x", 100_000)))
		}
		ack(r)
	},
	"babble":     func(r workerRequest) { say(map[string]string{"id": r.ID, "outcome": "all \x1b[2J good\n"}) },
	"garbage":    func(workerRequest) { fmt.Println("all \x1b[2J good") },
	"twice":      func(r workerRequest) { ack(r); ack(r); time.Sleep(time.Minute) },
	"unknown id": func(workerRequest) { ack(workerRequest{ID: "4711"}); time.Sleep(time.Minute) },
	"endless line": func(workerRequest) {
		for {
			os.Stdout.Write([]byte(strings.Repeat("x", 100_000)))
		}
	},
	"flood of answers": func(r workerRequest) {
		for range 1000 {
			os.Stdout.WriteString(strings.Repeat(`{"id":"4711","outcome":"ack"}`+"\n", 1000))
		}
		time.Sleep(time.Minute)
	},
	"flood of nothing": func(workerRequest) {
		for {
			os.Stdout.WriteString(strings.Repeat("\n", 10_000))
		}
	},
	"close stdout": func(workerRequest) { os.Stdout.Close(); time.Sleep(time.Minute) },
	"close stdin":  func(r workerRequest) { os.Stdin.Close(); ack(r); time.Sleep(time.Minute) },
	"mixed": func(r workerRequest) {
		switch r.Body {
		case "crash":
			fmt.Fprintln(os.Stderr, "out of ideas")
			os.Exit(3)
		case "hang":
			time.Sleep(time.Minute)
		case "garbage":
			fmt.Println("hello")
		case "last":
			ack(r)
			os.Exit(0)
		default:
			ack(r)
		}
	},
}

func ack(r workerRequest) { say(map[string]string{"id": r.ID, "outcome": "ack"}) }

func say(answer map[string]string) {
	line, err := json.Marshal(answer)
	if err != nil {
		panic(err)
	}
	os.Stdout.Write(append(line, '\n'))
}

// workAs is the main function of a worker. Modes that read no request are dealt
// with here.
func workAs(mode string) {
	switch mode {
	case "dead at start":
		fmt.Fprintln(os.Stderr, "no database")
		os.Exit(7)
	case "never read":
		time.Sleep(time.Minute)
	case "quick":
		answerQuickly()
		return
	case "swallow":
		swallow()
		return
	case "outstay":
		io.Copy(io.Discard, os.Stdin)
		time.Sleep(time.Minute)
	}
	in := bufio.NewReader(os.Stdin)
	for {
		line, err := in.ReadString('\n')
		if err != nil {
			return
		}
		var r workerRequest
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			fmt.Fprintf(os.Stderr, "unreadable request: %v\n", err)
			os.Exit(1)
		}
		behaviours[mode](r)
	}
}

// answerQuickly acks with as little work as possible, many requests at once.
func answerQuickly() {
	in, out := bufio.NewReaderSize(os.Stdin, 64<<10), bufio.NewWriter(os.Stdout)
	for {
		line, err := in.ReadSlice('\n')
		if err != nil {
			return
		}
		_, rest, _ := bytes.Cut(line, []byte(`:"`))
		id, _, _ := bytes.Cut(rest, []byte(`"`))
		fmt.Fprintf(out, `{"id":"%s","outcome":"ack"}`+"\n", id)
		if in.Buffered() == 0 {
			out.Flush()
		}
	}
}

// workerHandler is a handler whose worker is this test binary.
func workerHandler(t testing.TB, mode string) *spec.Handler {
	t.Helper()
	h := hooktest.Command(t, os.Args[0])
	h.Kind, h.Pipeline = spec.Worker, 1
	h.Env = []spec.EnvVar{
		{Name: workerMode, Value: spec.Text{Value: mode, Source: mode}},
		// With it the race detector waits a second before the process exits.
		{Name: "GORACE", Value: spec.Text{Value: "atexit_sleep_ms=0", Source: "atexit_sleep_ms=0"}},
	}
	return h
}

// shWorker is a handler whose worker is a shell script.
func shWorker(t *testing.T, script string) *spec.Handler {
	t.Helper()
	h := hooktest.Shell(t, script)
	h.Kind, h.Pipeline = spec.Worker, 1
	return h
}

// swallow acks each request without keeping its body.
func swallow() {
	id := make([]byte, 0, 32)
	buf := make([]byte, 1<<20)
	for {
		n, err := os.Stdin.Read(buf)
		if err != nil {
			return
		}
		id = append(id, buf[:min(n, cap(id)-len(id))]...)
		if buf[n-1] == '\n' {
			_, rest, _ := bytes.Cut(id, []byte(`:"`))
			number, _, _ := bytes.Cut(rest, []byte(`"`))
			fmt.Printf(`{"id":"%s","outcome":"ack"}`+"\n", number)
			id = id[:0]
		}
	}
}
