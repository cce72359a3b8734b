// Package logpipe stands between a log and the one who reads it, so that a reader
// that is stuck, slow or gone costs lines and nothing else.
//
// Lines wait in a bounded buffer for one goroutine that writes them. When it is
// full, lines are dropped and counted, and the log says how many once there is
// room again.
package logpipe

import (
	"bytes"
	"io"
	"sync"
	"sync/atomic"
	"time"
)

// Size is the default bound, in bytes, of the lines that wait.
const Size = 4 << 20

// chunk is the most that is written with one call, unless a line is longer: a
// pipe takes as much whole, so that lines of several writers do not mix.
const chunk = 4096

// keep is the largest buffer that is used again.
const keep = 256 << 10

// Writer writes lines to another writer without ever waiting for it. Each call of
// Write must hold whole lines. It is safe for concurrent use.
type Writer struct {
	out  io.Writer
	size int
	note func(lines uint64) []byte

	mu      sync.Mutex
	pending []byte
	closed  bool

	wake    chan struct{}
	done    chan struct{}
	dropped atomic.Uint64
	told    uint64 // how many of them the log has told of; belongs to run
	torn    bool   // the last line that went out has no end; belongs to run
}

// New returns a Writer to out that keeps up to size bytes for it. The note is the
// line which says that so many lines were dropped. Close ends the Writer.
func New(out io.Writer, size int, note func(lines uint64) []byte) *Writer {
	w := &Writer{out: out, size: size, note: note, wake: make(chan struct{}, 1), done: make(chan struct{})}
	go w.run()
	return w
}

// Write implements [io.Writer]. It never fails: a line that cannot be kept is
// dropped and counted.
func (w *Writer) Write(p []byte) (int, error) {
	w.mu.Lock()
	if w.closed || len(w.pending)+len(p) > w.size {
		w.dropped.Add(linesIn(p))
	} else {
		w.pending = append(w.pending, p...)
	}
	w.mu.Unlock()
	w.signal()
	return len(p), nil
}

// Dropped is how many lines were dropped so far.
func (w *Writer) Dropped() uint64 { return w.dropped.Load() }

// Close writes what waits, for patience at most, and reports whether it is over
// with that. A write that is stuck is left alone: the process is about to end.
func (w *Writer) Close(patience time.Duration) bool {
	w.mu.Lock()
	w.closed = true
	w.mu.Unlock()
	w.signal()
	limit := time.NewTimer(patience)
	defer limit.Stop()
	select {
	case <-w.done:
		return true
	case <-limit.C:
		return false
	}
}

func (w *Writer) signal() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// run writes what waits until the Writer is closed and nothing waits.
func (w *Writer) run() {
	defer close(w.done)
	var spare []byte
	for range w.wake {
		for {
			lines, missing, closed := w.take(spare)
			spare = nil
			if len(lines) == 0 && missing == 0 {
				if closed {
					return
				}
				break
			}
			if !w.writeAll(lines, missing) {
				if closed {
					return
				}
				break // the next line tries again
			}
			if cap(lines) <= keep {
				spare = lines[:0]
			}
		}
	}
}

// take returns the lines that wait, and how many were dropped without a word.
func (w *Writer) take(spare []byte) (lines []byte, missing uint64, closed bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	lines, w.pending = w.pending, spare
	return lines, w.dropped.Load() - w.told, w.closed
}

// writeAll writes lines, then how many are missing, and reports whether all that
// went out.
func (w *Writer) writeAll(lines []byte, missing uint64) bool {
	for len(lines) > 0 {
		n := chunkOf(lines)
		if !w.write(lines[:n]) {
			w.dropped.Add(linesIn(lines))
			return false
		}
		lines = lines[n:]
	}
	if missing == 0 {
		return true
	}
	if !w.write(w.note(missing)) {
		return false
	}
	w.told += missing
	return true
}

// write reports whether p went out. After half a line the next one begins anew.
func (w *Writer) write(p []byte) bool {
	if w.torn {
		if _, err := w.out.Write([]byte("\n")); err != nil {
			return false
		}
		w.torn = false
	}
	n, err := w.out.Write(p)
	w.torn = n > 0 && p[n-1] != '\n'
	return err == nil
}

// chunkOf is how many bytes of lines, whole lines, go out at once.
func chunkOf(lines []byte) int {
	if len(lines) <= chunk {
		return len(lines)
	}
	if end := bytes.LastIndexByte(lines[:chunk], '\n'); end >= 0 {
		return end + 1
	}
	if end := bytes.IndexByte(lines, '\n'); end >= 0 {
		return end + 1
	}
	return len(lines)
}

func linesIn(p []byte) uint64 { return uint64(max(1, bytes.Count(p, []byte("\n")))) }
