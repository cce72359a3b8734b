package exec

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/rsctl/rsctl/pkg/hooks"
	"github.com/rsctl/rsctl/pkg/hooks/internal/message"
	"github.com/rsctl/rsctl/pkg/hooks/internal/process"
)

// A header's variable is left out when its value is longer than maxEnvValue, or
// when all of them together would pass maxEnvHeaders. Linux refuses to start a
// process with one string of 128 KiB or with more than a quarter of its stack
// limit in all.
const (
	maxEnvValue   = 32 << 10
	maxEnvHeaders = 128 << 10
)

// environ collects the variables of one delivery.
type environ struct {
	vars    []string
	left    int // bytes that headers may still take
	omitted int // headers left out
}

// deliveryEnv is base with what is known about m. Headers that do not fit are
// left out and counted.
func deliveryEnv(base []string, dir string, m *hooks.Message) environ {
	e := fixedEnv(base, dir, m)
	var seen map[string]bool
	for _, name := range slices.Sorted(maps.Keys(m.Headers)) {
		variable := process.HeaderPrefix + envName(name)
		if seen[variable] {
			continue // of two names that become one variable the first wins
		}
		if seen == nil {
			seen = make(map[string]bool, len(m.Headers))
		}
		seen[variable] = true
		if strings.HasSuffix(variable, process.OmittedSuffix) {
			e.leaveOut(variable, len(message.HeaderText(m.Headers[name]))) // only rsctl sets marks
			continue
		}
		e.header(variable, message.HeaderText(m.Headers[name]))
	}
	if e.omitted > 0 {
		e.vars = append(e.vars, "RSCTL_HEADERS_OMITTED="+strconv.Itoa(e.omitted))
	}
	return e
}

// fixedEnv is base with the variables that a delivery sets, but for its headers.
func fixedEnv(base []string, dir string, m *hooks.Message) environ {
	e := environ{vars: make([]string, len(base), len(base)+len(process.DeliveryNames)+len(m.Headers)), left: maxEnvHeaders}
	copy(e.vars, base)
	e.set("PWD", dir)
	e.set("RSCTL_QUEUE", m.Queue)
	e.set("RSCTL_ATTEMPT", strconv.Itoa(m.Attempt))
	e.set("RSCTL_MAX_ATTEMPTS", strconv.Itoa(m.MaxAttempts))
	e.set("RSCTL_REDELIVERED", strconv.FormatBool(m.Redelivered))
	e.set("RSCTL_EXCHANGE", m.Exchange)
	e.set("RSCTL_ROUTING_KEY", m.RoutingKey)
	e.set("RSCTL_MESSAGE_ID", m.MessageID)
	e.set("RSCTL_CORRELATION_ID", m.CorrelationID)
	e.set("RSCTL_CONTENT_TYPE", m.ContentType)
	e.trace(hooks.TraceContext(m.Headers))
	return e
}

// trace passes the trace context on, under the names that OpenTelemetry gives
// variables.
func (e *environ) trace(parent, state string) {
	if parent != "" {
		e.set("TRACEPARENT", parent)
	}
	if state != "" {
		e.set("TRACESTATE", state)
	}
}

// withoutHeaders is the environment of last resort, for a system whose limit is
// lower than ours.
func withoutHeaders(base []string, dir string, m *hooks.Message) []string {
	return append(fixedEnv(base, dir, m).vars, "RSCTL_HEADERS_OMITTED="+strconv.Itoa(len(m.Headers)))
}

// set adds a property. No variable can hold a NUL byte.
func (e *environ) set(name, value string) {
	if strings.IndexByte(value, 0) >= 0 {
		name, value = name+process.OmittedSuffix, strconv.Itoa(len(value))
	}
	e.vars = append(e.vars, name+"="+value)
}

func (e *environ) header(name, value string) {
	if len(value) > maxEnvValue || len(name)+len(value) > e.left || strings.IndexByte(value, 0) >= 0 {
		e.leaveOut(name, len(value))
		return
	}
	e.add(name, value)
}

// leaveOut counts a header and leaves a mark with its size. No header becomes a
// variable with the suffix of a mark, so that a mark is never a publisher's.
func (e *environ) leaveOut(name string, size int) {
	e.omitted++
	name, value := name+process.OmittedSuffix, strconv.Itoa(size)
	if len(name)+len(value) <= e.left {
		e.add(name, value)
	}
}

func (e *environ) add(name, value string) {
	e.left -= len(name) + len(value) + 2
	e.vars = append(e.vars, name+"="+value)
}

// envName is a header's name as a variable may be called: upper case, every
// byte that is not a letter or digit an underscore.
func envName(name string) string {
	b := []byte(name)
	for i, c := range b {
		switch {
		case 'a' <= c && c <= 'z':
			b[i] = c - 'a' + 'A'
		case 'A' <= c && c <= 'Z', '0' <= c && c <= '9':
		default:
			b[i] = '_'
		}
	}
	return string(b)
}
