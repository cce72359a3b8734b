package spec

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxName is what AMQP's short strings hold. The server closes the connection
// on a longer one.
const maxName = 255

// reservation says whether a name may start with amq., which RabbitMQ keeps for
// itself: declaring such a name is refused with 403.
type reservation int

const (
	reserve reservation = iota
	allowReserved
	allowPredeclared
)

// predeclared are the exchanges that every virtual host has.
var predeclared = []string{"amq.direct", "amq.fanout", "amq.headers", "amq.match", "amq.topic",
	"amq.rabbitmq.trace", "amq.rabbitmq.log"}

// name checks a name and returns it, or "" with a problem reported.
func (d *decoder) name(n *node, r reservation) string {
	if n.value == "" {
		d.refuse(n, "name", n.label+" must not be empty", "")
		return ""
	}
	if !d.shortText(n) {
		return ""
	}
	if r != allowReserved && strings.HasPrefix(n.value, "amq.") && !(r == allowPredeclared && slices.Contains(predeclared, n.value)) {
		d.refuse(n, "name", fmt.Sprintf("%s %s starts with amq., which RabbitMQ keeps for itself", n.label, n.shown()), reservedHint(r))
		return ""
	}
	return n.value
}

func reservedHint(r reservation) string {
	if r == allowPredeclared {
		return "predeclared exchanges are " + strings.Join(predeclared, ", ")
	}
	return "choose another name"
}

// shortText checks what AMQP sends as a short string: names, routing keys and
// consumer tags. The server strips line breaks from names it declares, and
// nothing can then be found under the name as written.
func (d *decoder) shortText(n *node) bool {
	fault := shortTextFault(n.value)
	if fault == "" {
		return true
	}
	message := n.label + " " + fault
	if !n.inserted {
		message += ", got " + n.shown()
	}
	d.refuse(n, "name", message, "")
	return false
}

func shortTextFault(s string) string {
	switch {
	case !utf8.ValidString(s):
		return "must be UTF-8"
	case len(s) > maxName:
		return fmt.Sprintf("must be at most %d bytes long, and has %d", maxName, len(s))
	case strings.ContainsFunc(s, func(r rune) bool { return unicode.IsControl(r) || r == '\u2028' || r == '\u2029' }):
		return "must not hold line breaks or control characters"
	}
	return ""
}
