package cli

import (
	"encoding/json"
	"io"
	"log/slog"

	"github.com/spf13/cobra"
)

// app is what every command shares: the streams and the global flags.
type app struct {
	sys IO
	tty struct{ out, err console } // what the real streams are
	log *runLog                    // of "run"; else nil
	globals
}

// globals are the flags that stand on every command.
type globals struct {
	file          string
	url           string
	managementURL string
	output        choice
	color         choice
}

func terminals(sys IO) struct{ out, err console } {
	return struct{ out, err console }{terminalOf(sys.Out), terminalOf(sys.Err)}
}

func (a *app) stdout() console { return a.console(a.sys.Out, a.tty.out) }
func (a *app) stderr() console { return a.console(a.sys.Err, a.tty.err) }

func (a *app) console(w io.Writer, c console) console {
	c.w = w
	c.colours = wantColours(c, a.color.value)
	return c
}

// json prints v as indented JSON with a final line break.
func (a *app) json(v any) error {
	enc := json.NewEncoder(a.sys.Out)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}

// warnings is a logger for the library packages: only what a person should see.
func (a *app) warnings() *slog.Logger {
	return slog.New(slog.NewTextHandler(a.sys.Err, &slog.HandlerOptions{Level: slog.LevelWarn}))
}

// formats is the annotation that lists what --output may be on a command.
const formats = "formats"

// bind registers the global flags on the root command.
func (g *globals) bind(root *cobra.Command) {
	g.output = choice{value: "text", allowed: []string{"text", "json", "github", "junit", "sarif"}}
	g.color = choice{value: "auto", allowed: []string{"auto", "always", "never"}}
	f := root.PersistentFlags()
	f.StringVarP(&g.file, "file", "f", defaultFile, "the spec, as `FILE`; \"-\" is standard input")
	f.StringVar(&g.url, "url", "", "broker to use instead of broker.url, as an amqp:// or amqps:// `URL`")
	f.StringVar(&g.managementURL, "management-url", "", "management API to use instead of broker.management_url, as an http:// `URL`")
	f.Var(&g.output, "output", "`form` of the result: text or json, more on some commands")
	f.Var(&g.color, "color", "`when` to use colours: auto, always or never; NO_COLOR turns auto off")
}

// IO is what a command may touch of the outside world besides the network and
// the files it is told about. Results go to Out, diagnostics to Err.
type IO struct {
	In       io.Reader
	Out, Err io.Writer
}

// progress writes a line that only a person at a terminal needs.
func (a *app) progress(format string, args ...any) {
	if c := a.stderr(); c.terminal && a.output.value == "text" {
		c.printf(c.paint(dim, format)+"\n", args...)
	}
}

// openLog puts a log in the place of standard error, once, as soon as its form is
// known: text, json, or auto for what standard error is.
func (a *app) openLog(format, level string) {
	if a.log != nil {
		return
	}
	asText := format == "text" || format == "auto" && a.stderr().terminal
	a.log = newRunLog(a.sys.Err, asText, level)
	a.sys.Err = a.log.pipe
}
