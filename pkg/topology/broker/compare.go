package broker

import (
	"context"
	"fmt"
	"maps"
	"regexp"
	"strconv"
	"strings"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rsctl/rsctl/pkg/topology"
)

// A difference is one setting of an existing object that is not as wanted.
type difference struct{ key, have, want string }

func (d difference) String() string {
	if d.key == keyType || d.key == keyExchangeType {
		return fmt.Sprintf("is %s, want %s", strings.Trim(d.have, `"`), strings.Trim(d.want, `"`))
	}
	return fmt.Sprintf("%s: have %s, want %s", d.key, d.have, d.want)
}

const (
	keyType         = "x-queue-type"
	keyExchangeType = "type"
)

func joinDifferences(ds []difference) string {
	texts := make([]string, len(ds))
	for i, d := range ds {
		texts[i] = d.String()
	}
	return strings.Join(texts, "; ")
}

// A form is what the server compares in an active declare of something that
// exists: flags by their name in the server's texts, and arguments.
type form struct {
	exchangeType string
	flags        map[string]bool
	arguments    amqp.Table
}

func (f form) clone() form {
	f.flags, f.arguments = maps.Clone(f.flags), maps.Clone(f.arguments)
	return f
}

// A poison makes an active declare harmless: the server compares what exists
// before it validates what it would create, so that the declare of an existing
// object answers with the first difference, and one of an object that has just
// vanished is refused instead of creating it. Measured on 3.10, 4.0 and 4.3:
// x-max-age belongs to streams, is not compared on classic and quorum queues,
// and is refused in their creation; alternate-exchange is compared last, and
// its type is checked in a creation only.
const (
	queuePoison    = "x-max-age"
	exchangePoison = "alternate-exchange"
)

// compareRounds bounds the questions about one object: the server names one
// difference at a time.
const compareRounds = 32

// compareQueue returns how the existing queue differs from q. Nothing is created
// or changed. An answer other than a difference (403, 404) is the error.
func (s *Session) compareQueue(ctx context.Context, q topology.Queue) ([]difference, error) {
	want := queueForm(q)
	return s.compare(ctx, want, func(f form) question {
		f.arguments[queuePoison] = int64(0)
		return func(ch *amqp.Channel) error { return declareQueueForm(ch, q.Name, f) }
	})
}

// compareExchange is compareQueue for an exchange. It goes over a connection of
// its own where the type may be unknown to the server.
func (s *Session) compareExchange(ctx context.Context, x topology.Exchange) ([]difference, error) {
	want := exchangeForm(x)
	ds, err := s.compare(ctx, want, func(f form) question {
		f.arguments[exchangePoison] = int64(0)
		return func(ch *amqp.Channel) error { return declareExchangeForm(ch, x.Name, f) }
	})
	return alternateOf(x, ds), err
}

// compare asks for the first difference, takes over what the server has, and
// asks again until nothing differs.
func (s *Session) compare(ctx context.Context, want form, declare func(form) question) ([]difference, error) {
	ask := s.ask
	if !coreType(want.exchangeType) {
		ask = s.aside
	}
	var found []difference
	probe := want.clone()
	for range compareRounds {
		err := ask(ctx, declare(probe.clone()))
		answer := answerOf(err)
		if err == nil || answer == nil {
			return found, err
		}
		d, ok := parseInequivalent(answer, want)
		if !ok {
			return found, err
		}
		if d.key == queuePoison {
			return found, nil // compared after all, by a server newer than known
		}
		found = append(found, d.difference)
		if d.key == keyType || d.key == exchangePoison || !probe.adopt(d) {
			return typeFirst(found), nil
		}
	}
	return found, nil
}

// typeFirst keeps only the type when it differs: the other differences follow
// from it.
func typeFirst(ds []difference) []difference {
	for _, d := range ds {
		if d.key == keyType {
			return []difference{d}
		}
	}
	return ds
}

// alternateOf replaces the poison's difference by the real one, if any.
func alternateOf(x topology.Exchange, ds []difference) []difference {
	if len(ds) == 0 || ds[len(ds)-1].key != exchangePoison {
		return ds
	}
	last := ds[len(ds)-1]
	ds = ds[:len(ds)-1]
	want := show(x.Arguments[exchangePoison])
	if last.have == want {
		return ds
	}
	return append(ds, difference{exchangePoison, last.have, want})
}

// An inequivalence is a difference as the server tells it. kind is the type of
// the current value, "" when it is that of the received one.
type inequivalence struct {
	difference
	current, kind string
}

var (
	inequivalentText = regexp.MustCompile(`(?s)inequivalent arg '([^']+)' for (?:queue|exchange) '.*' in vhost '.*': received (.*) but current is (.*)$`)
	typedText        = regexp.MustCompile(`(?s)^the value '(.*)' of type '(\w+)'$`)
	lockedProperty   = "exclusive property value does not match"
)

func parseInequivalent(answer *amqp.Error, want form) (inequivalence, bool) {
	if answer.Code == codeLocked && strings.Contains(answer.Reason, lockedProperty) && want.flags["exclusive"] {
		return inequivalence{difference{"exclusive", "false", "true"}, "false", ""}, true
	}
	m := inequivalentText.FindStringSubmatch(answer.Reason)
	if answer.Code != codePrecondition || m == nil {
		return inequivalence{}, false
	}
	d := inequivalence{difference: difference{key: m[1]}}
	d.current, d.kind = currentValue(m[3])
	d.have, d.want = d.shown(want), want.show(d.key)
	if d.have == d.want && d.key != exchangePoison {
		d.have += " of another type"
	}
	return d, true
}

// shown renders the server's value as form.show renders ours.
func (d inequivalence) shown(want form) string {
	_, text := want.arguments[d.key].(string)
	switch {
	case d.key == keyType && d.kind == "none":
		return strconv.Quote("classic") // declared without a type, on 3.x
	case d.kind == "none":
		return d.current
	case d.key == exchangePoison, d.kind == "longstr", d.kind == "" && text:
		return strconv.Quote(d.current)
	}
	return d.current
}

func currentValue(text string) (value, kind string) {
	if text == "none" {
		return text, "none"
	}
	if m := typedText.FindStringSubmatch(text); m != nil {
		return m[1], m[2]
	}
	return strings.TrimSuffix(strings.TrimPrefix(text, "'"), "'"), ""
}

// adopt takes over the server's value, so that the next question is about the
// next difference. It reports false for a value that cannot be sent back.
func (f form) adopt(d inequivalence) bool {
	if _, flag := f.flags[d.key]; flag {
		f.flags[d.key] = d.current == "true"
		return true
	}
	if d.kind == "none" {
		delete(f.arguments, d.key)
		return true
	}
	kind := d.kind
	if kind == "" {
		kind = kindOf(f.arguments[d.key])
	}
	switch kind {
	case "longstr":
		f.arguments[d.key] = d.current
	case "bool":
		f.arguments[d.key] = d.current == "true"
	case "byte", "short", "signedint", "long", "unsignedbyte", "unsignedshort", "unsignedint":
		n, err := strconv.ParseInt(d.current, 10, 64)
		if err != nil || f.arguments[d.key] == any(n) {
			return false
		}
		f.arguments[d.key] = n
	default:
		return false
	}
	return true
}

func kindOf(v any) string {
	switch v.(type) {
	case string:
		return "longstr"
	case bool:
		return "bool"
	case int64:
		return "long"
	}
	return ""
}
