package kinds

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"runtime"
	"time"
)

// readSize is how much is read from a worker at a time; keepOut the largest
// buffer for requests that a process keeps.
const (
	readSize = 16 << 10
	keepOut  = 256 << 10
)

// hangUpFor is how long a process may live with a closed pipe. One that ends
// closes its pipes first, and on a busy machine its end is seen much later.
const hangUpFor = 2 * time.Second

func (p *process) tellWriter() {
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// write sends lines as they come, all that wait at once.
func (p *process) write() {
	var batch []byte
	for {
		<-p.wake
		runtime.Gosched() // calls that are ready too get into this batch
		p.mu.Lock()
		batch, p.out = p.out, batch[:0]
		last := p.last
		p.mu.Unlock()
		n, err := p.stdin.Write(batch)
		p.written += int64(n)
		switch {
		case err != nil:
			p.hungUp(err, "closed its standard input and went on")
			return
		case last:
			p.finishInput()
			return
		}
		if cap(batch) > keepOut {
			batch = nil
		}
	}
}

// finishInput gives a process that still runs the end of its input.
func (p *process) finishInput() {
	select {
	case <-p.exited: // what it left unread is counted first
	default:
		p.stdin.Close()
	}
}

// hungUp ends a process that has closed one of its pipes. One that has just
// ended closes them too, and is left to say how.
func (p *process) hungUp(err error, text string) {
	if errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, os.ErrClosed) {
		return // we ended it
	}
	wait := time.NewTimer(hangUpFor)
	defer wait.Stop()
	select {
	case <-p.exited:
	case <-wait.C:
		p.end(&stopCause{text: text})
	}
}

// read takes answers until the process closes its output. After a line that is
// no answer nothing can be trusted; the rest is read and thrown away, so that
// it does not keep the process from ending.
func (p *process) read() {
	buf := make([]byte, 0, readSize)
	var broken error
	in := lateReader{f: p.stdout}
	for {
		n, err := in.Read(buf[len(buf):cap(buf)])
		buf = buf[:len(buf)+n]
		if broken == nil {
			if buf, broken = p.lines(buf); broken != nil {
				p.end(broken)
			}
		}
		if broken != nil {
			buf = buf[:0]
		}
		if err != nil {
			p.hungUp(err, "closed its standard output and went on")
			return
		}
	}
}

// lines handles the whole lines of buf and returns what is left, with room for
// more. An error means that the process does not keep to the protocol.
func (p *process) lines(buf []byte) ([]byte, error) {
	rest := buf
	for {
		end := bytes.IndexByte(rest, '\n')
		if end < 0 {
			break
		}
		if line := bytes.TrimSpace(rest[:end]); len(line) > 0 {
			if err := p.answer(line); err != nil {
				return buf, err
			}
		}
		rest = rest[end+1:]
	}
	if len(rest) > maxAnswerLine {
		return buf, &stopCause{text: fmt.Sprintf("printed a line of more than %d bytes, beginning with %s", maxAnswerLine, printable(string(rest[:64]), 64))}
	}
	if len(rest) == cap(buf) {
		return append(make([]byte, 0, 2*cap(buf)), rest...), nil
	}
	return append(buf[:0], rest...), nil
}

// answer hands one answer to the call that waits for it.
func (p *process) answer(line []byte) error {
	id, r, err := readAnswer(line)
	if err != nil {
		return &stopCause{text: "printed a line that " + err.Error()}
	}
	p.mu.Lock()
	c, last := p.calls[id], p.lastID
	delete(p.calls, id)
	p.answers++
	p.mu.Unlock()
	if p.pool.stillborn.Load() != 0 {
		p.pool.stillborn.Store(0)
	}
	switch {
	case c != nil:
		c.done <- r
		return nil
	case id <= last:
		return &stopCause{text: fmt.Sprintf("answered request %d twice", id)}
	}
	return &stopCause{text: fmt.Sprintf("answered request %d, which it never got", id)}
}
