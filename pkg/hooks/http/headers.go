package http

import (
	"encoding/base64"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/rsctl/rsctl/pkg/hooks"
	"github.com/rsctl/rsctl/pkg/hooks/http/internal/exchange"
	"github.com/rsctl/rsctl/pkg/hooks/internal/message"
	"github.com/rsctl/rsctl/pkg/spec"
)

// A message's header is left out when its value is longer than maxHTTPValue as
// it is sent, or when all of them together would pass maxHTTPHeaders: common
// servers refuse requests with more than 16 KiB of headers, or 8 KiB in one.
const (
	maxHTTPValue   = 4 << 10
	maxHTTPHeaders = 8 << 10
)

// setHeaders prepares what every request carries.
func (e *endpoint) setHeaders() error {
	fixed := http.Header{"User-Agent": {"rsctl"}}
	if user := e.url.User; user != nil {
		password, _ := user.Password()
		token := base64.StdEncoding.EncodeToString([]byte(user.Username() + ":" + password))
		fixed.Set("Authorization", "Basic "+token)
	}
	for _, v := range e.h.Headers {
		if err := checkHeader(v); err != nil {
			return err
		}
		fixed.Set(v.Name, v.Value.Value)
	}
	e.host, e.contentType = fixed.Get("Host"), fixed.Get("Content-Type")
	fixed.Del("Host")
	fixed.Del("Content-Type")
	for _, name := range slices.Sorted(maps.Keys(fixed)) {
		e.fixed = append(e.fixed, exchange.Field{Name: name, Value: fixed[name][0]})
	}
	return nil
}

// framing are the headers by which a request is delimited.
var framing = []string{"Connection", "Content-Length", "Expect", "Te", "Trailer", "Transfer-Encoding", "Upgrade"}

// checkHeader refuses what would break a request. Its errors never show the
// value.
func checkHeader(v spec.EnvVar) error {
	switch name := http.CanonicalHeaderKey(v.Name); {
	case v.Name == "" || escapeName(v.Name) != strings.ToLower(v.Name):
		return fmt.Errorf("handler header %q is not a header name", message.Printable(v.Name, 64))
	case strings.HasPrefix(name, "Rsctl-"):
		return fmt.Errorf("handler header %q: names beginning with RSCTL- are set by rsctl", v.Name)
	case slices.Contains(framing, name):
		return fmt.Errorf("handler header %q belongs to the connection and is set by rsctl", v.Name)
	case strings.ContainsFunc(v.Value.Value, func(r rune) bool { return r < 0x20 && r != '\t' || r == 0x7f }):
		return fmt.Errorf("handler header %q holds a line break or another control character", v.Name)
	case name == "Host" && escapeValue(strings.ReplaceAll(v.Value.Value, " ", "\n")) != v.Value.Value:
		return fmt.Errorf("handler header %q is not a host name", v.Name)
	}
	return nil
}

// headerSet collects the headers of one request.
type headerSet struct {
	fields  []exchange.Field
	left    int // bytes that the message's headers may still take
	omitted int
}

// fields returns the headers of the request for m.
func (e *endpoint) fields(m *hooks.Message) []exchange.Field {
	s := headerSet{fields: make([]exchange.Field, 0, len(e.fixed)+16+len(m.Headers)), left: maxHTTPHeaders}
	s.fields = append(s.fields, e.fixed...)
	if m.ContentType != "" && escapeValue(m.ContentType) == m.ContentType {
		s.put("Content-Type", m.ContentType)
	} else if e.contentType != "" {
		s.fields = append(s.fields, exchange.Field{Name: "Content-Type", Value: e.contentType})
	}
	s.put("RSCTL-Queue", m.Queue)
	s.put("RSCTL-Exchange", m.Exchange)
	s.put("RSCTL-Routing-Key", m.RoutingKey)
	s.put("RSCTL-Attempt", strconv.Itoa(m.Attempt))
	s.put("RSCTL-Max-Attempts", strconv.Itoa(m.MaxAttempts))
	s.put("RSCTL-Redelivered", strconv.FormatBool(m.Redelivered))
	s.optional(m)
	s.message(m)
	parent, state := hooks.TraceContext(m.Headers)
	s.trace(e.fixed, parent, state)
	if s.omitted > 0 {
		s.put("RSCTL-Headers-Omitted", strconv.Itoa(s.omitted))
		e.warn.Do(func() {
			e.opts.Log.Warn("headers left out of the request", "queue", e.opts.Queue,
				"message_id", message.Printable(m.MessageID, 255), slog.Int("headers", s.omitted))
		})
	}
	return s.fields
}

// optional adds the properties that a message need not have.
func (s *headerSet) optional(m *hooks.Message) {
	for _, p := range [...]exchange.Field{
		{Name: "RSCTL-Message-Id", Value: m.MessageID},
		{Name: "RSCTL-Correlation-Id", Value: m.CorrelationID},
		{Name: "RSCTL-Content-Type", Value: m.ContentType},
		{Name: "RSCTL-Content-Encoding", Value: m.ContentEncoding},
		{Name: "RSCTL-Type", Value: m.Type},
		{Name: "RSCTL-App-Id", Value: m.AppID},
		{Name: "RSCTL-Reply-To", Value: m.ReplyTo},
	} {
		if p.Value != "" {
			s.put(p.Name, p.Value)
		}
	}
	if m.Timestamp != 0 {
		s.put("RSCTL-Timestamp", strconv.FormatInt(m.Timestamp, 10))
	}
	if m.Priority != 0 {
		s.put("RSCTL-Priority", strconv.Itoa(int(m.Priority)))
	}
}

// message adds the message's own headers. HTTP does not tell upper from lower
// case in names: of two that differ only so, the first in byte order is sent.
func (s *headerSet) message(m *hooks.Message) {
	if len(m.Headers) == 0 {
		return
	}
	seen := make(map[string]bool, len(m.Headers))
	for _, name := range slices.Sorted(maps.Keys(m.Headers)) {
		key := "RSCTL-Header-" + escapeName(name)
		if seen[key] {
			continue
		}
		seen[key] = true
		raw := message.HeaderText(m.Headers[name])
		value := escapeValue(raw[:min(len(raw), maxHTTPValue+1)])
		if len(value) > maxHTTPValue || len(key)+len(value) > s.left || markLike(key) {
			s.omitted++
			key, value = key+"-Omitted", strconv.Itoa(len(raw))
			if len(key)+len(value) > s.left {
				continue
			}
		}
		s.left -= len(key) + len(value)
		s.fields = append(s.fields, exchange.Field{Name: key, Value: value})
	}
}

// markLike reports whether an endpoint could take a header for the mark of one
// that was left out: only rsctl sets marks. Some servers do not tell "-" and "_"
// in a name apart.
func markLike(key string) bool {
	return strings.HasSuffix(key, "-omitted") || strings.HasSuffix(key, "_omitted")
}

// trace passes a trace context on, unless the spec sets one.
func (s *headerSet) trace(fixed []exchange.Field, parent, state string) {
	if parent == "" || slices.ContainsFunc(fixed, func(f exchange.Field) bool { return f.Name == "Traceparent" || f.Name == "Tracestate" }) {
		return
	}
	s.fields = append(s.fields, exchange.Field{Name: "Traceparent", Value: parent})
	if state != "" {
		s.fields = append(s.fields, exchange.Field{Name: "Tracestate", Value: state})
	}
}

func (s *headerSet) put(name, value string) {
	s.fields = append(s.fields, exchange.Field{Name: name, Value: escapeValue(value)})
}

const upperHex = "0123456789ABCDEF"

// escapeValue percent-encodes what a header's value cannot carry unharmed:
// bytes other than visible ASCII and inner spaces, and the percent sign itself,
// so that decoding is exact.
func escapeValue(s string) string {
	return escape(s, func(i int) bool {
		c := s[i]
		return c > 0x20 && c < 0x7f && c != '%' || c == ' ' && i > 0 && i < len(s)-1
	})
}

// escapeName is a name in lower case with the bytes that a header name cannot
// have percent-encoded.
func escapeName(s string) string {
	return escape(strings.ToLower(s), func(i int) bool {
		// The tokens of RFC 9110 without the percent sign.
		c := s[i]
		return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' ||
			strings.IndexByte("!#$&'*+-.^_`|~", c) >= 0
	})
}

func escape(s string, safe func(i int) bool) string {
	start := 0
	for start < len(s) && safe(start) {
		start++
	}
	if start == len(s) {
		return s
	}
	b := append(make([]byte, 0, len(s)+16), s[:start]...)
	for i := start; i < len(s); i++ {
		if safe(i) {
			b = append(b, s[i])
			continue
		}
		b = append(b, '%', upperHex[s[i]>>4], upperHex[s[i]&15])
	}
	return string(b)
}
