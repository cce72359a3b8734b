package rabbit

import (
	"cmp"
	"fmt"
)

// Installed is the series that means "whatever version this machine has".
const Installed = "installed"

// Series lists the RabbitMQ series the project is tested on, oldest first.
func Series() []string { return []string{"3.10", "4.0", "4.3"} }

// Options says what to start. The zero value is one node of the installed
// series with the management plugin.
type Options struct {
	// Series is one of [Series] or [Installed]; empty means what the
	// environment variable RSCTL_E2E_SERIES says, else Installed.
	Series string
	// Plugins are enabled besides rabbitmq_management. [DelayedMessage] is
	// built on the spot; any other must be part of the server's package.
	Plugins []string
	// Config holds lines of rabbitmq.conf, for example
	// {"consumer_timeout": "5000"}.
	Config map[string]string
	// Advanced is an Erlang list for advanced.config, for settings that have no
	// line of rabbitmq.conf, for example "[{rabbit, [{tcp_backlog, 7}]}]".
	Advanced string
	// Progress gets one line per long step (installing, building); nil is
	// silent.
	Progress func(line string)
}

func (o Options) advanced() string { return cmp.Or(o.Advanced, "[]") + ".\n" }

func (o Options) progress(format string, args ...any) {
	if o.Progress != nil {
		o.Progress(fmt.Sprintf(format, args...))
	}
}
