package cli

import (
	"bytes"
	"io"
	stdlog "log"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/rsctl/rsctl/cmd/rsctl/internal/logpipe"
	"github.com/rsctl/rsctl/pkg/spec"
)

var levels = map[string]slog.Level{
	"debug": slog.LevelDebug, "info": slog.LevelInfo, "warn": slog.LevelWarn, "error": slog.LevelError,
}

// flushFor bounds what the end of a run waits for whoever reads its log.
const flushFor = 500 * time.Millisecond

// runLog is the log of a run, on standard error: all that the run prints is in
// it, in one form. It never waits for its reader, and a reader that goes away
// costs the lines, not the service.
type runLog struct {
	*slog.Logger
	pipe *logpipe.Writer
	json bool
}

// newRunLog returns a log that is written to err.
func newRunLog(err io.Writer, asText bool, level string) *runLog {
	outliveReaders()
	handler := func(w io.Writer) slog.Handler { return newHandler(w, asText, levels[level]) }
	pipe := logpipe.New(err, logpipe.Size, func(lines uint64) []byte { return droppedLine(handler, lines) })
	log := slog.New(handler(pipe))
	stdlog.SetFlags(0) // packages of the library that use it: net/http's client does
	stdlog.SetOutput(slog.NewLogLogger(log.Handler(), slog.LevelDebug).Writer())
	return &runLog{Logger: log, pipe: pipe, json: !asText}
}

// outliveReaders keeps a write to a pipe that nobody reads from ending the
// process. Unlike an ignored signal, one that is taken is not passed on to
// handlers: they are ended by a broken pipe as usual.
func outliveReaders() { signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE) }

func newHandler(w io.Writer, asText bool, level slog.Level) slog.Handler {
	opts := &slog.HandlerOptions{Level: level, ReplaceAttr: readable}
	if asText {
		return slog.NewTextHandler(logpipe.Escaping(w), opts)
	}
	return slog.NewJSONHandler(logpipe.Escaping(w), opts)
}

// droppedLine says, in the form of the log, how many lines are missing.
func droppedLine(handler func(io.Writer) slog.Handler, lines uint64) []byte {
	var b bytes.Buffer
	slog.New(handler(&b)).Error("lines of the log were dropped: it was not read as fast as it was written", "not_logged", lines)
	return b.Bytes()
}

// readable writes durations as 1.5s in JSON too, not as nanoseconds.
func readable(_ []string, attr slog.Attr) slog.Attr {
	if attr.Value.Kind() == slog.KindDuration {
		attr.Value = slog.StringValue(attr.Value.Duration().String())
	}
	return attr
}

// problems logs what is wrong with a spec. People get the lines that "validate"
// prints.
func (log *runLog) problems(c console, all spec.Problems) {
	if !log.json {
		printProblems(c, all)
		return
	}
	for _, p := range all {
		log := log.With("at", at(p.File, p.Pos), "rule", p.Rule)
		if p.Hint != "" {
			log = log.With("hint", p.Hint)
		}
		if p.Severity == spec.Error {
			log.Error(p.Message)
		} else {
			log.Warn(p.Message)
		}
	}
}

// fail logs why the run ends.
func (l *runLog) fail(c console, text, hint string) {
	switch {
	case !l.json:
		printError(c, text, hint)
	case hint != "":
		l.Error(text, "hint", hint)
	default:
		l.Error(text)
	}
}

// close waits for the reader of the log, but not for long.
func (l *runLog) close() { l.pipe.Close(flushFor) }
