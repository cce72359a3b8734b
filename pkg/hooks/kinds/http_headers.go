package kinds

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
	e.header = http.Header{"User-Agent": {"rsctl"}}
	if user := e.url.User; user != nil {
		password, _ := user.Password()
		token := base64.StdEncoding.EncodeToString([]byte(user.Username() + ":" + password))
		e.header.Set("Authorization", "Basic "+token)
	}
	for _, v := range e.h.Headers {
		if v.Name == "" || escapeName(v.Name) != strings.ToLower(v.Name) {
			return fmt.Errorf("handler header %q is not a header name", printable(v.Name, 64))
		}
		if strings.HasPrefix(strings.ToUpper(v.Name), "RSCTL-") {
			return fmt.Errorf("handler header %q: names beginning with RSCTL- are set by rsctl", v.Name)
		}
		if strings.ContainsAny(v.Value.Value, "\x00\r\n") {
			return fmt.Errorf("handler header %q holds a line break", v.Name)
		}
		if strings.EqualFold(v.Name, "Host") {
			e.host = v.Value.Value
			continue
		}
		e.header.Set(v.Name, v.Value.Value)
	}
	// An empty list sends nothing, but tells the transport that a request which
	// met a connection the server was closing may be sent once more.
	if len(e.header.Values("Idempotency-Key")) == 0 {
		e.header["Idempotency-Key"] = []string{}
	}
	return nil
}

// headerSet collects the headers of one request; values share one slice.
type headerSet struct {
	header  http.Header
	values  []string
	left    int // bytes that the message's headers may still take
	omitted int
}

// headers returns the headers of the request for m.
func (e *endpoint) headers(m *hooks.Message) http.Header {
	s := headerSet{header: make(http.Header, len(e.header)+16), values: make([]string, 0, 20), left: maxHTTPHeaders}
	maps.Copy(s.header, e.header)
	if m.ContentType != "" && escapeValue(m.ContentType) == m.ContentType {
		s.put("Content-Type", m.ContentType)
	}
	s.put("RSCTL-Queue", m.Queue)
	s.put("RSCTL-Exchange", m.Exchange)
	s.put("RSCTL-Routing-Key", m.RoutingKey)
	s.put("RSCTL-Attempt", strconv.Itoa(m.Attempt))
	s.put("RSCTL-Max-Attempts", strconv.Itoa(m.MaxAttempts))
	s.put("RSCTL-Redelivered", strconv.FormatBool(m.Redelivered))
	s.optional(m)
	s.message(m)
	if s.omitted > 0 {
		s.put("RSCTL-Headers-Omitted", strconv.Itoa(s.omitted))
		e.warn.Do(func() {
			e.opts.Log.Warn("headers left out of the request", "queue", e.opts.Queue,
				"message_id", printable(m.MessageID, 255), slog.Int("headers", s.omitted))
		})
	}
	return s.header
}

// optional adds the properties that a message need not have.
func (s *headerSet) optional(m *hooks.Message) {
	for _, p := range [...]struct{ name, value string }{
		{"RSCTL-Message-Id", m.MessageID},
		{"RSCTL-Correlation-Id", m.CorrelationID},
		{"RSCTL-Content-Type", m.ContentType},
		{"RSCTL-Content-Encoding", m.ContentEncoding},
		{"RSCTL-Type", m.Type},
		{"RSCTL-App-Id", m.AppID},
		{"RSCTL-Reply-To", m.ReplyTo},
	} {
		if p.value != "" {
			s.put(p.name, p.value)
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
	for _, name := range slices.Sorted(maps.Keys(m.Headers)) {
		key := "RSCTL-Header-" + escapeName(name)
		if _, taken := s.header[key]; taken {
			continue
		}
		raw := headerText(m.Headers[name])
		value := escapeValue(raw[:min(len(raw), maxHTTPValue+1)])
		if len(value) > maxHTTPValue || len(key)+len(value) > s.left {
			s.omitted++
			key, value = key+"-Omitted", strconv.Itoa(len(raw))
			if len(key)+len(value) > s.left {
				continue
			}
		}
		s.left -= len(key) + len(value)
		s.raw(key, value)
	}
}

func (s *headerSet) put(name, value string) { s.raw(name, escapeValue(value)) }

// raw adds a value that is escaped already.
func (s *headerSet) raw(name, value string) {
	s.values = append(s.values, value)
	n := len(s.values)
	s.header[name] = s.values[n-1 : n : n]
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
