// Package ledger accounts for every message of a test run.
//
// A [Load] publishes messages with ids and enters each one that the broker has
// confirmed. Hooks write a line at the start and at the end of each run to one
// append-only file. Afterwards [Ledger.Account] says of every id where it is:
// acked by a run that succeeded, in a queue, or lost.
package ledger

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"
)

// A Ledger knows what was published and what the hooks wrote. It is safe for
// concurrent use, and the hooks may be other processes.
type Ledger struct {
	path string
	file *os.File

	mu      sync.Mutex
	in      map[string]entry
	byQueue map[string]int
	seen    int64 // bytes of the file that runs counts
	runs    int
}

// entry is one message that the broker has confirmed.
type entry struct {
	plan Plan
	at   time.Time // of the confirm
}

// Open starts a ledger with its file in dir.
func Open(dir string) (*Ledger, error) {
	path := filepath.Join(dir, "ledger")
	file, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o666)
	if err != nil {
		return nil, err
	}
	return &Ledger{path: path, file: file, in: map[string]entry{}, byQueue: map[string]int{}}, nil
}

// Path is the file that hooks append to.
func (l *Ledger) Path() string { return l.path }

// Close closes the file; what was written stays.
func (l *Ledger) Close() error { return l.file.Close() }

// enter notes a message as published.
func (l *Ledger) enter(queue, id string, p Plan) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.byQueue[queue]++
	l.in[id] = entry{p, time.Now()}
}

// In is how many messages the broker has confirmed.
func (l *Ledger) In() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.in)
}

// InQueue is how many of them were published to one queue.
func (l *Ledger) InQueue(queue string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.byQueue[queue]
}

// write appends one line with one system call, so that lines of several
// processes never mix.
func (l *Ledger) write(line string) error {
	_, err := l.file.WriteString(line)
	return err
}

// history is what the file says about one id.
type history struct {
	starts  int
	acks    int
	last    string    // outcome of the last run that ended
	highest int       // attempt number that a hook was told
	first   time.Time // of the first start whose line has a time
}

// Runs is how many runs of hooks have started, over all messages.
func (l *Ledger) Runs() (int, error) {
	file, err := os.Open(l.path)
	if err != nil {
		return 0, err
	}
	defer file.Close()
	l.mu.Lock()
	defer l.mu.Unlock()
	data, err := io.ReadAll(io.NewSectionReader(file, l.seen, math.MaxInt64-l.seen))
	if err != nil {
		return 0, err
	}
	whole := data[:bytes.LastIndexByte(data, '\n')+1]
	l.seen += int64(len(whole))
	for line := range bytes.Lines(whole) {
		if bytes.HasPrefix(line, []byte("start ")) {
			l.runs++
		}
	}
	return l.runs, nil
}

// Spent returns the messages that have had so many runs and were not acked.
func (l *Ledger) Spent(runs int) (map[string]bool, error) {
	all, err := l.read()
	ids := map[string]bool{}
	for id, h := range all {
		if h.starts >= runs && h.acks == 0 {
			ids[id] = true
		}
	}
	return ids, err
}

// read returns the histories by id. A last line that is not complete belongs to
// a hook that was killed while it wrote, and is left out.
func (l *Ledger) read() (map[string]*history, error) {
	data, err := os.ReadFile(l.path)
	if err != nil {
		return nil, err
	}
	all := map[string]*history{}
	for line := range bytes.Lines(data[:bytes.LastIndexByte(data, '\n')+1]) {
		if err := note(all, strings.Fields(string(line))); err != nil {
			return nil, fmt.Errorf("%s: %w", l.path, err)
		}
	}
	return all, nil
}

// note takes in "start ID ATTEMPT", which a time in microseconds may follow, or "end ID ATTEMPT OUTCOME".
func note(all map[string]*history, words []string) error {
	if len(words) < 3 {
		return fmt.Errorf("line %q has too few words", words)
	}
	attempt, err := strconv.Atoi(words[2])
	if err != nil {
		return fmt.Errorf("line %q: %w", words, err)
	}
	h := all[words[1]]
	if h == nil {
		h = &history{}
		all[words[1]] = h
	}
	h.highest = max(h.highest, attempt)
	switch {
	case words[0] == "start":
		h.starts++
		if len(words) == 4 && h.first.IsZero() {
			micros, err := strconv.ParseInt(words[3], 10, 64)
			if err != nil {
				return fmt.Errorf("line %q: %w", words, err)
			}
			h.first = time.UnixMicro(micros)
		}
	case words[0] == "end" && len(words) == 4:
		h.last = words[3]
		if words[3] == Ack {
			h.acks++
		}
	default:
		return fmt.Errorf("line %q is neither a start nor an end", words)
	}
	return nil
}
