package kinds

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"strings"
	"sync"

	"github.com/rsctl/rsctl/pkg/hooks"
)

// What a process prints is read to its end, so that it never blocks, but only
// this much is kept: bytes of one line, and bytes per delivery and stream, both
// as they are logged.
const (
	maxLine   = 4 << 10
	maxStream = 64 << 10
	maxAnswer = 4 << 10 // of descriptor 4
	maxReply  = 1 << 20 // of a reply, which is never cut: a longer one is a failure
)

// drain reads r until its end or its deadline.
func drain(r *os.File, to taker) {
	buf := buffers.Get().(*[]byte)
	defer buffers.Put(buf)
	in := lateReader{f: r}
	for {
		n, err := in.Read(*buf)
		to.take((*buf)[:n])
		if err != nil {
			return
		}
	}
}

var buffers = sync.Pool{New: func() any {
	b := make([]byte, 32<<10)
	return &b
}}

// head keeps the first limit bytes, and one more to tell that there were more.
type head struct {
	buf   []byte
	limit int
}

func (h *head) take(p []byte) { h.buf = append(h.buf, p[:min(len(p), h.limit+1-len(h.buf))]...) }

// outputLog turns one stream of a process into log records, one a line.
type outputLog struct {
	c      *command
	m      *hooks.Message // nil: of a process for several deliveries
	pid    int            // logged when set
	stream string

	line    []byte // the current line, at most maxLine bytes
	cut     int    // bytes of the current line that were dropped
	last    []byte // the last line that was not empty
	used    int    // bytes logged
	dropped int    // bytes of lines not logged
}

func (l *outputLog) take(p []byte) {
	for len(p) > 0 {
		end := bytes.IndexByte(p, '\n')
		part := p
		if end >= 0 {
			part = p[:end]
		}
		keep := min(len(part), maxLine-len(l.line))
		l.line = append(l.line, part[:keep]...)
		l.cut += len(part) - keep
		if end < 0 {
			return
		}
		l.flush()
		p = p[end+1:]
	}
}

// flush ends the current line.
func (l *outputLog) flush() {
	line := bytes.TrimRight(l.line, "\r")
	if len(bytes.TrimSpace(line)) > 0 {
		l.last = append(l.last[:0], line...)
		l.record(line)
	}
	l.line, l.cut = l.line[:0], 0
}

func (l *outputLog) record(line []byte) {
	if !l.c.opts.Log.Enabled(context.Background(), slog.LevelInfo) {
		return
	}
	text := printable(string(line), maxLine)
	if l.used+len(text) > maxStream {
		l.dropped += len(line) + l.cut
		l.used = maxStream // what follows is dropped too: no gaps
		return
	}
	l.used += len(text)
	attrs := append(l.source(), slog.String("line", text))
	if l.cut > 0 {
		attrs = append(attrs, slog.Int("truncated_bytes", l.cut))
	}
	l.c.log(slog.LevelInfo, "handler output", l.m, attrs...)
}

// end logs what is left once the stream has ended.
func (l *outputLog) end() {
	l.flush()
	l.truncated()
}

// truncated logs how much was left out, and forgets it.
func (l *outputLog) truncated() {
	if l.dropped > 0 {
		l.c.log(slog.LevelInfo, "handler output truncated", l.m, append(l.source(), slog.Int("truncated_bytes", l.dropped))...)
	}
	l.dropped = 0
}

// source says where output came from.
func (l *outputLog) source() []slog.Attr {
	attrs := []slog.Attr{slog.String("stream", l.stream)}
	if l.pid > 0 {
		attrs = append(attrs, slog.Int("pid", l.pid))
	}
	return attrs
}

// lastLine is the reason that a process gives for its end.
func (l *outputLog) lastLine() string { return printable(strings.TrimSpace(string(l.last)), maxReason) }
