package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// closeNow is the deadline of a connection that must not be waited for.
func closeNow() time.Time { return time.Now().Add(200 * time.Millisecond) }

// messageFlags describe a message on the command line.
type messageFlags struct {
	body, bodyFile      string
	headers, properties []string
	id                  string
}

func (f *messageFlags) bind(fl *pflag.FlagSet) {
	fl.StringVar(&f.body, "body", "", "`TEXT` of the body")
	fl.StringVar(&f.bodyFile, "body-file", "", "`FILE` with the body; \"-\" is standard input")
	fl.StringArrayVar(&f.headers, "header", nil, "header as `NAME=TEXT` or NAME:=JSON; may be repeated")
	fl.StringArrayVar(&f.properties, "property", nil, "property as `NAME=VALUE`; may be repeated")
}

// stdin is what --body-file means by standard input.
const stdin = "-"

// resolve says where the body comes from when no flag does.
func (f *messageFlags) resolve(cmd *cobra.Command) {
	if !cmd.Flags().Changed("body") && !cmd.Flags().Changed("body-file") {
		f.bodyFile = stdin
	}
}

// message builds the message of the flags, without its id.
func (a *app) message(f messageFlags) (amqp.Publishing, error) {
	if f.body != "" && f.bodyFile != "" {
		return amqp.Publishing{}, usagef("drop one of them", "--body and --body-file were both given")
	}
	msg, err := f.envelope()
	if err == nil {
		msg.Body, err = a.readBody(f)
	}
	return msg, err
}

// readBody returns the body; a terminal as standard input is never waited for.
func (a *app) readBody(f messageFlags) ([]byte, error) {
	switch f.bodyFile {
	case "":
		return []byte(f.body), nil
	case stdin:
		if terminalOf(a.sys.In).terminal {
			return nil, nil
		}
		if a.file == stdin {
			return nil, usagef("give the body with --body or --body-file", "the spec is read from standard input, so the body cannot be")
		}
		return io.ReadAll(a.sys.In)
	}
	body, err := os.ReadFile(f.bodyFile)
	if err != nil {
		return nil, fmt.Errorf("cannot read the body: %w", err)
	}
	return body, nil
}

// envelope holds the properties and headers of the flags.
func (f messageFlags) envelope() (amqp.Publishing, error) {
	msg := amqp.Publishing{DeliveryMode: amqp.Persistent, Timestamp: time.Now(), AppId: "rsctl"}
	for _, p := range f.properties {
		name, value, ok := strings.Cut(p, "=")
		if !ok {
			return msg, usagef("for example content_type=text/plain", "--property %q is not name=value", p)
		}
		if err := setProperty(&msg, name, value); err != nil {
			return msg, err
		}
	}
	for _, h := range f.headers {
		name, value, err := parseHeader(h)
		if err != nil {
			return msg, err
		}
		if msg.Headers == nil {
			msg.Headers = amqp.Table{}
		}
		msg.Headers[name] = value
	}
	return msg, nil
}

// properties are the settable ones; message_id has a flag of its own.
var properties = map[string]func(*amqp.Publishing, string) error{
	"app_id":           text(func(m *amqp.Publishing) *string { return &m.AppId }),
	"content_encoding": text(func(m *amqp.Publishing) *string { return &m.ContentEncoding }),
	"content_type":     text(func(m *amqp.Publishing) *string { return &m.ContentType }),
	"correlation_id":   text(func(m *amqp.Publishing) *string { return &m.CorrelationId }),
	"reply_to":         text(func(m *amqp.Publishing) *string { return &m.ReplyTo }),
	"type":             text(func(m *amqp.Publishing) *string { return &m.Type }),
	"user_id":          text(func(m *amqp.Publishing) *string { return &m.UserId }),
	"delivery_mode":    setDeliveryMode,
	"expiration":       setExpiration,
	"priority":         setPriority,
	"timestamp":        setTimestamp,
}

func setProperty(m *amqp.Publishing, name, value string) error {
	set, ok := properties[name]
	if !ok {
		names := slices.Sorted(maps.Keys(properties))
		hint := "known: " + strings.Join(names, ", ")
		if name == "message_id" {
			hint = "use --id"
		}
		return usagef(hint, "unknown property %q%s", name, didYouMean(name, names))
	}
	if err := set(m, value); err != nil {
		return usagef("", "property %s=%s: %w", name, value, err)
	}
	return nil
}

// maxShortString is the longest text property AMQP can carry, in bytes.
const maxShortString = 255

func text(field func(*amqp.Publishing) *string) func(*amqp.Publishing, string) error {
	return func(m *amqp.Publishing, value string) error {
		if len(value) > maxShortString {
			return fmt.Errorf("must be at most %d bytes", maxShortString)
		}
		*field(m) = value
		return nil
	}
}

func setDeliveryMode(m *amqp.Publishing, value string) error {
	switch value {
	case "1", "transient":
		m.DeliveryMode = amqp.Transient
	case "2", "persistent":
		m.DeliveryMode = amqp.Persistent
	default:
		return fmt.Errorf("must be persistent (2) or transient (1)")
	}
	return nil
}

// setExpiration takes what the broker takes: milliseconds as a plain number, at
// most ten years.
func setExpiration(m *amqp.Publishing, value string) error {
	const tenYears = 315_360_000_000
	ms, err := strconv.ParseUint(value, 10, 64)
	if err != nil || ms > tenYears {
		return fmt.Errorf("must be milliseconds, a whole number from 0 to %d", tenYears)
	}
	m.Expiration = strconv.FormatUint(ms, 10)
	return nil
}

func setPriority(m *amqp.Publishing, value string) error {
	n, err := strconv.ParseUint(value, 10, 8)
	if err != nil {
		return fmt.Errorf("must be a number from 0 to %d", math.MaxUint8)
	}
	m.Priority = uint8(n)
	return nil
}

func setTimestamp(m *amqp.Publishing, value string) error {
	if seconds, err := strconv.ParseInt(value, 10, 64); err == nil {
		m.Timestamp = time.Unix(seconds, 0)
		return nil
	}
	t, err := time.Parse(time.RFC3339, value)
	if err != nil {
		return fmt.Errorf("must be seconds since 1970 or RFC 3339")
	}
	m.Timestamp = t
	return nil
}

// parseHeader reads name=text or name:=json.
func parseHeader(h string) (string, any, error) {
	name, value, ok := strings.Cut(h, "=")
	if !ok || name == "" || name == ":" {
		return "", nil, usagef("for example source=test or tries:=3", "--header %q is not name=value", h)
	}
	typed, isTyped := strings.CutSuffix(name, ":")
	name = typed
	switch {
	case len(name) > maxShortString:
		return "", nil, usagef("", "the name of a --header is longer than %d bytes", maxShortString)
	case !isTyped:
		return name, value, nil
	}
	v, err := parseJSON(value)
	if err != nil {
		return "", nil, usagef("for example tries:=3", "--header %q: the value is not JSON", h)
	}
	return name, v, nil
}

// parseJSON returns values that an AMQP table can hold; whole numbers are int64.
func parseJSON(text string) (any, error) {
	dec := json.NewDecoder(bytes.NewReader([]byte(text)))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		return nil, err
	}
	if _, err := dec.Token(); err != io.EOF {
		return nil, fmt.Errorf("more than one value")
	}
	return tableValue(v)
}

func tableValue(v any) (any, error) {
	switch v := v.(type) {
	case json.Number:
		if n, err := v.Int64(); err == nil {
			return n, nil
		}
		return v.Float64()
	case []any:
		for i := range v {
			var err error
			if v[i], err = tableValue(v[i]); err != nil {
				return nil, err
			}
		}
		return v, nil
	case map[string]any:
		table := amqp.Table{}
		for name, value := range v {
			var err error
			if table[name], err = tableValue(value); err != nil {
				return nil, err
			}
		}
		return table, nil
	}
	return v, nil
}
