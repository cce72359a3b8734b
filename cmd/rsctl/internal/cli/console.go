package cli

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"

	"golang.org/x/term"

	"github.com/rsctl/rsctl/cmd/rsctl/internal/logpipe"
)

// The rules for terminals, in one place:
//
//   - Colours appear only on a terminal, never when NO_COLOR is set or TERM is
//     "dumb"; --color=always and --color=never overrule all of that.
//   - Prose is wrapped to the terminal, at most maxWidth columns, and to
//     pipeWidth columns elsewhere. The last column of a table is wrapped to the
//     terminal where that leaves it readable; elsewhere a row is one line.
//   - Control characters in names and messages, and those that change the
//     direction of text, are escaped, so that a queue's
//     name or a server's answer cannot drive the terminal.
const (
	pipeWidth = 80
	minWidth  = 40
	maxWidth  = 100
	minColumn = 24 // the narrowest last column of a table
)

type colour string

const (
	plain  colour = ""
	bold   colour = "1"
	dim    colour = "2"
	red    colour = "31"
	green  colour = "32"
	yellow colour = "33"
	cyan   colour = "36"
)

// console is one output stream and what may be done with it.
type console struct {
	w        io.Writer
	terminal bool
	colours  bool
	width    int // of prose
	columns  int // of the terminal; 0: not one
}

// paint wraps text in an escape sequence where colours are wanted.
func (c console) paint(col colour, text string) string {
	if !c.colours || col == plain || text == "" {
		return text
	}
	return "\x1b[" + string(col) + "m" + text + "\x1b[0m"
}

func (c console) printf(format string, args ...any) { fmt.Fprintf(c.w, format, args...) }

func (c console) println(text string) { fmt.Fprintln(c.w, text) }

// terminalOf describes the terminal behind w, or the pipe or file it is.
func terminalOf(w any) console {
	f, ok := w.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return console{width: pipeWidth}
	}
	width, _, err := term.GetSize(int(f.Fd()))
	if err != nil || width <= 0 {
		width = pipeWidth
	}
	return console{terminal: true, width: max(minWidth, min(width, maxWidth)), columns: width}
}

// wantColours applies --color, NO_COLOR and TERM to one stream.
func wantColours(c console, mode string) bool {
	switch mode {
	case "always":
		return true
	case "never":
		return false
	}
	return c.terminal && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
}

// safe escapes control characters other than line breaks, and what changes the
// direction of text.
func safe(s string) string {
	if !strings.ContainsFunc(s, isControl) {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		switch {
		case isControl(r) && r < 0x100:
			fmt.Fprintf(&b, "\\x%02x", r)
			continue
		case isControl(r):
			fmt.Fprintf(&b, "\\u%04x", r)
			continue
		}
		b.WriteRune(r)
	}
	return b.String()
}

func isControl(r rune) bool { return r != '\n' && r != '\t' && logpipe.Unsafe(r) }

// oneLine is safe text without line breaks.
func oneLine(s string) string {
	return safe(strings.Join(strings.Fields(s), " "))
}

// stickyWriter remembers the first failed write, so that a full disk or a
// closed pipe is noticed although no command looks at each write.
type stickyWriter struct {
	w   io.Writer
	mu  sync.Mutex
	err error
}

func (s *stickyWriter) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return 0, s.err
	}
	n, err := s.w.Write(p)
	s.err = err
	return n, err
}

func (s *stickyWriter) failure() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == nil {
		return nil
	}
	return fmt.Errorf("writing the result: %w", s.err)
}
