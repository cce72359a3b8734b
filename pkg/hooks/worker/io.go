package worker

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"runtime"
	"time"

	"github.com/rsctl/rsctl/pkg/hooks/internal/message"
	"github.com/rsctl/rsctl/pkg/hooks/internal/process"
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

func (p *child) tellWriter() {
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// write sends lines as they come, all that wait at once.
func (p *child) write() {
	var batch message.Payload
	var scratch []byte
	var n int64
	var err error
	for {
		<-p.wake
		runtime.Gosched() // calls that are ready too get into this batch
		p.mu.Lock()
		batch, p.out = p.out, batch
		last := p.inputOver
		p.mu.Unlock()
		n, scratch, err = batch.Send(p.stdin, scratch)
		p.written += n
		switch {
		case err != nil:
			p.hungUp(err, "closed its standard input and went on")
			return
		case last:
			p.finishInput()
			return
		}
		batch.Reset(keepOut)
	}
}

// finishInput gives a process that still runs the end of its input.
func (p *child) finishInput() {
	select {
	case <-p.exited: // what it left unread is counted first
	default:
		p.stdin.Close()
	}
}

// hungUp ends a process that has closed one of its pipes. One that has just
// ended closes them too, and is left to say how.
func (p *child) hungUp(err error, text string) {
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
func (p *child) read() {
	buf := make([]byte, 0, readSize)
	var broken error
	in := process.NewLateReader(p.stdout)
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
//
// The answers are handed on once all whole lines are read: two to one request
// that come together are none, since it cannot be known which was meant.
func (p *child) lines(buf []byte) ([]byte, error) {
	defer p.handOn()
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
	if len(rest) > message.MaxAnswerLine {
		return buf, &stopCause{text: fmt.Sprintf("printed a line of more than %d bytes, beginning with %s", message.MaxAnswerLine, message.Printable(string(rest[:64]), 64))}
	}
	if len(rest) == cap(buf) {
		return append(make([]byte, 0, 2*cap(buf)), rest...), nil
	}
	return append(buf[:0], rest...), nil
}

// answer takes one answer to a call.
func (p *child) answer(line []byte) error {
	id, r, err := message.ReadAnswer(line)
	if err != nil {
		return &stopCause{text: "printed a line that " + err.Error()}
	}
	p.mu.Lock()
	c, last := p.calls[id], p.lastID
	delete(p.calls, id)
	p.answers++
	p.mu.Unlock()
	if p.pool.diedUnread.Load() != 0 {
		p.pool.diedUnread.Store(0)
	}
	switch {
	case c != nil:
		p.taken = append(p.taken, answered{id, c, result{Answer: r}})
		return nil
	case id <= last:
		p.distrust(id)
		return &stopCause{text: fmt.Sprintf("answered request %d twice", id)}
	}
	return &stopCause{text: fmt.Sprintf("answered request %d, which it never got", id)}
}

// answered is a call with its answer.
type answered struct {
	id uint64
	c  *call
	r  result
}

// distrust turns an answer that has not been handed on into a failure, because a
// second one to the same request has come.
func (p *child) distrust(id uint64) {
	for i := range p.taken {
		if p.taken[i].id == id {
			p.taken[i].r = failed("malformed answer: the request was answered twice")
		}
	}
}

// handOn gives the answers that have been taken to the calls that wait for them.
func (p *child) handOn() {
	for _, a := range p.taken {
		a.c.done <- a.r
	}
	clear(p.taken)
	p.taken = p.taken[:0]
}
