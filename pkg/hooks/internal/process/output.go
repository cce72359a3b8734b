package process

import (
	"bytes"
	"context"
	"log/slog"
	"strings"

	"github.com/rsctl/rsctl/pkg/hooks"
	"github.com/rsctl/rsctl/pkg/hooks/internal/message"
)

// What a process prints is read to its end, so that it never blocks, but only
// this much is logged: bytes of one line, and bytes per delivery and stream.
const (
	MaxLine   = 4 << 10
	MaxStream = 64 << 10
)

// An OutputLog turns one stream of a process into log records, one a line.
type OutputLog struct {
	c      *Command
	m      *hooks.Message // nil: of a process for several deliveries
	pid    int            // logged when set
	stream string

	line    []byte // the current line, at most MaxLine bytes
	cut     int    // bytes of the current line that were dropped
	last    []byte // the last line that was not empty
	used    int    // bytes logged
	dropped int    // bytes of lines not logged
}

// NewOutputLog returns a log of a stream, which belongs to the delivery m; nil: to a
// batch.
func NewOutputLog(c *Command, stream string, m *hooks.Message) *OutputLog {
	return &OutputLog{c: c, m: m, stream: stream}
}

// Take implements [Taker].
func (l *OutputLog) Take(p []byte) {
	for len(p) > 0 {
		end := bytes.IndexByte(p, '\n')
		part := p
		if end >= 0 {
			part = p[:end]
		}
		keep := min(len(part), MaxLine-len(l.line))
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
func (l *OutputLog) flush() {
	line := bytes.TrimRight(l.line, "\r")
	if len(bytes.TrimSpace(line)) > 0 {
		l.last = append(l.last[:0], line...)
		l.record(line)
	}
	l.line, l.cut = l.line[:0], 0
}

func (l *OutputLog) record(line []byte) {
	if !l.c.opts.Log.Enabled(context.Background(), slog.LevelInfo) {
		return
	}
	text := message.Printable(string(line), MaxLine)
	if l.used+len(text) > MaxStream {
		l.dropped += len(line) + l.cut
		l.used = MaxStream // what follows is dropped too: no gaps
		return
	}
	l.used += len(text)
	attrs := append(l.source(), slog.String("line", text))
	if l.cut > 0 {
		attrs = append(attrs, slog.Int("truncated_bytes", l.cut))
	}
	l.c.Log(slog.LevelInfo, "handler output", l.m, attrs...)
}

// End logs what is left once the stream has ended.
func (l *OutputLog) End() {
	l.flush()
	l.truncated()
}

// truncated logs how much was left out, and forgets it.
func (l *OutputLog) truncated() {
	if l.dropped > 0 {
		l.c.Log(slog.LevelInfo, "handler output truncated", l.m, append(l.source(), slog.Int("truncated_bytes", l.dropped))...)
	}
	l.dropped = 0
}

// source says where output came from.
func (l *OutputLog) source() []slog.Attr {
	attrs := []slog.Attr{slog.String("stream", l.stream)}
	if l.pid > 0 {
		attrs = append(attrs, slog.Int("pid", l.pid))
	}
	return attrs
}

// LastLine is the reason that a process gives for its end.
func (l *OutputLog) LastLine() string {
	return message.Printable(strings.TrimSpace(string(l.last)), message.MaxReason)
}
