package process

import (
	"os"
	"testing"
	"time"
)

// latePipe is a pipe whose reading deadline has passed, and its writing end.
func latePipe(t *testing.T) (r, w *os.File) {
	t.Helper()
	pr, pw, err := NewPipe()
	if err != nil {
		t.Fatal(err)
	}
	r, w = Pollable(pr), os.NewFile(uintptr(pw), "|")
	t.Cleanup(func() { r.Close(); w.Close() })
	r.SetReadDeadline(time.Unix(1, 0))
	return r, w
}

// A busy machine may let the deadline pass before anything has been read.
func TestLateReader_ReadsWhatAProcessHasWritten(t *testing.T) {
	t.Parallel()
	r, w := latePipe(t)
	w.WriteString("retry_after 30s\n")
	got := &BoundedBuffer{Limit: 4 << 10}
	Drain(r, got) // w is open: a child that was left behind has it
	if string(got.Bytes()) != "retry_after 30s\n" {
		t.Errorf("read %q", got.Bytes())
	}
}

// counter counts what it takes, and writes as much again.
type counter struct {
	w *os.File
	n int
}

func (c *counter) Take(p []byte) {
	c.n += len(p)
	c.w.Write(p)
}

func TestLateReader_DoesNotReadForEver(t *testing.T) {
	t.Parallel()
	r, w := latePipe(t)
	w.Write(make([]byte, 4096))
	c := &counter{w: w}
	Drain(r, c)
	if c.n != pipeHolds {
		t.Errorf("read %d bytes past the deadline, want %d, what a pipe holds", c.n, pipeHolds)
	}
}
