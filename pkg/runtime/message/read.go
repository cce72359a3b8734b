package message

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rsctl/rsctl/pkg/settle"
)

// maxCount is the largest count that is believed; see [settle.Attempt].
const maxCount = math.MaxInt32 - 1

// Reading is what a delivery's properties say about its attempts and origin.
type Reading struct {
	Attempt int // from 1; see [settle.Attempt]
	Counted int // what the message's copies have counted; 0: never copied
	// DeliveryCount is how often a quorum queue has counted the message as
	// returned since it was published; 0 on a delivery that is not marked
	// redelivered.
	DeliveryCount int64
	// CountProblem says, on one line, why the count header was taken as 0; ""
	// when it was not there, or good, or another queue's.
	CountProblem string
	// Exchange and RoutingKey are those of the first delivery.
	Exchange, RoutingKey string
}

// A Reader reads the deliveries of one queue.
type Reader struct {
	Queue string
	Type  settle.Type
	// Arrivals are the ways by which our own copies reach the queue; nil stands
	// for the default exchange alone.
	Arrivals []settle.Arrival
}

// Read is that of a [Reader] whose copies come by the default exchange.
func Read(queue string, t settle.Type, d *amqp.Delivery) Reading {
	return Reader{Queue: queue, Type: t}.Read(d)
}

// Read returns what d says about itself. It never fails: what cannot be
// understood counts as absent.
//
// Where the message first came from is believed only of a delivery that came as
// our copies do: anybody may write the header, and what arrives from an exchange
// of a publisher's arrives for the first time. The count is believed from every
// exchange, because other services on the queue publish their copies as they
// like; a publisher who forges it shortens the life of its own message.
//
// x-delivery-count is believed only on a delivery marked redelivered. From 4.0
// on, a quorum queue adds the header after the first return only, and before
// that shows whatever the publisher has sent under this name.
func (in Reader) Read(d *amqp.Delivery) Reading {
	r := Reading{Exchange: d.Exchange, RoutingKey: d.RoutingKey}
	foreign := ownedByAnother(in.Queue, d.Headers)
	if !foreign && !diedIn(in.Queue, d.Headers) {
		r.Counted, r.CountProblem = readCount(d.Headers)
	}
	if _, dead := d.Headers[HeaderReason]; (!foreign || dead) && in.brings(d) {
		r.readOrigin(d.Headers)
	}
	if n, ok := integer(d.Headers[headerDeliveryCount]); ok && d.Redelivered {
		r.DeliveryCount = max(n, 0)
	}
	r.Attempt = settle.Attempt(in.Type, r.Counted, r.DeliveryCount)
	return r
}

// brings reports whether d came as copies of ours do.
func (in Reader) brings(d *amqp.Delivery) bool {
	if in.Arrivals == nil {
		return settle.Arrival{Key: in.Queue}.Brings(d.Exchange, d.RoutingKey)
	}
	for _, a := range in.Arrivals {
		if a.Brings(d.Exchange, d.RoutingKey) {
			return true
		}
	}
	return false
}

// ownedByAnother reports whether the headers were written for another queue: a
// handler that forwards a message with all its headers must not forward its
// attempts. A copy that ruststream made has no such mark and is believed.
func ownedByAnother(queue string, h amqp.Table) bool {
	owner, ok := h[HeaderQueue].(string)
	return ok && owner != queue
}

// diedIn reports whether queue has given the message up since its last copy, so
// that whoever put it back, with its headers, starts it afresh. A copy leaves the
// history behind, hence an entry of this queue is younger than the count. The
// reason tells a death from waiting in the queue for too long.
func diedIn(queue string, h amqp.Table) bool {
	deaths, _ := h[headerDeath].([]any)
	for _, v := range deaths {
		death, _ := v.(amqp.Table)
		if death["queue"] == queue && (death["reason"] == "rejected" || death["reason"] == "delivery_limit") {
			return true
		}
	}
	return false
}

// BlocksDeath reports whether the server would lose a message with these headers
// instead of dead-lettering it to target: RabbitMQ up to 3.13 fails on a death
// history that no server has written, and every version drops a message that has
// already died in its target, other than by a reject, as going in circles.
func BlocksDeath(h amqp.Table, target string) bool {
	for name := range h {
		if strings.HasPrefix(name, "x-first-death-") {
			if _, ok := h[name].(string); !ok {
				return true
			}
		}
	}
	v, there := h[headerDeath]
	if !there {
		return false
	}
	deaths, ok := v.([]any)
	for _, v := range deaths {
		death, isTable := v.(amqp.Table)
		ok = ok && isTable && serverMade(death) && death["queue"] != target
	}
	return !ok
}

// serverMade reports whether an entry of x-death has the types of a server's.
func serverMade(death amqp.Table) bool {
	for _, name := range []string{"queue", "reason", "exchange"} {
		if _, ok := death[name].(string); !ok {
			return false
		}
	}
	_, counted := death["count"].(int64)
	_, timed := death["time"].(time.Time)
	keys, listed := death["routing-keys"].([]any)
	for _, key := range keys {
		_, text := key.(string)
		listed = listed && text
	}
	return counted && timed && listed
}

func (r *Reading) readOrigin(h amqp.Table) {
	exchange, ok := h[HeaderExchange].(string)
	if !ok {
		return
	}
	if key, ok := h[HeaderRoutingKey].(string); ok {
		r.Exchange, r.RoutingKey = exchange, key
	}
}

func readCount(h amqp.Table) (n int, problem string) {
	v, ok := h[HeaderCount]
	if !ok {
		return 0, ""
	}
	n, why := count(v)
	if why != "" {
		return 0, fmt.Sprintf("header %s %s: taken as 0", HeaderCount, why)
	}
	return n, ""
}

func count(v any) (n int, why string) {
	i, ok := integer(v)
	if s, text := v.(string); text {
		i, ok = decimal(s)
		v = fmt.Sprintf("%.40q", s)
	}
	switch {
	case !ok:
		return 0, "is no count (" + shown(v) + ")"
	case i < 0:
		return 0, fmt.Sprintf("is negative (%v)", v)
	case i > maxCount:
		return 0, fmt.Sprintf("is too large (%v)", v)
	}
	return int(i), ""
}

// shown is v for one line of a log: quoted text as it is, else v's type.
func shown(v any) string {
	if s, ok := v.(string); ok {
		return s
	}
	return fmt.Sprintf("%T", v)
}

// integer returns v if it is an integer of any width that AMQP knows.
func integer(v any) (int64, bool) {
	switch n := v.(type) {
	case int8:
		return int64(n), true
	case uint8:
		return int64(n), true
	case int16:
		return int64(n), true
	case uint16:
		return int64(n), true
	case int32:
		return int64(n), true
	case uint32:
		return int64(n), true
	case int64:
		return n, true
	case int:
		return int64(n), true
	}
	return 0, false
}

// decimal reads plain decimal text; a number too large for an int64 comes back
// as the largest one.
func decimal(s string) (int64, bool) {
	digits := s
	if len(s) > 0 && s[0] == '-' {
		digits = s[1:]
	}
	if digits == "" {
		return 0, false
	}
	for _, c := range []byte(digits) {
		if c < '0' || c > '9' {
			return 0, false
		}
	}
	n, _ := strconv.ParseInt(s, 10, 64) // out of range: the nearest bound
	return n, true
}
