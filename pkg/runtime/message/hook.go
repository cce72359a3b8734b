package message

import (
	"math"
	"strconv"
	"strings"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rsctl/rsctl/pkg/hooks"
)

// ForHook builds what a hook sees of d. The body is shared with d, not copied.
//
// UserID is the property alone: the broker vouches for it, and for a header of
// whatever name it does not. A copy has no user_id; who sent the original is in
// the x-rsctl-user-id header.
func ForHook(queue string, maxAttempts int, r Reading, d *amqp.Delivery) hooks.Message {
	return hooks.Message{
		Queue:           queue,
		Exchange:        r.Exchange,
		RoutingKey:      r.RoutingKey,
		Attempt:         r.Attempt,
		MaxAttempts:     maxAttempts,
		Redelivered:     d.Redelivered,
		MessageID:       d.MessageId,
		CorrelationID:   d.CorrelationId,
		ContentType:     d.ContentType,
		ContentEncoding: d.ContentEncoding,
		Type:            d.Type,
		AppID:           d.AppId,
		UserID:          d.UserId,
		ReplyTo:         d.ReplyTo,
		Expiration:      d.Expiration,
		Timestamp:       rawTime(d.Timestamp),
		Priority:        d.Priority,
		DeliveryMode:    d.DeliveryMode,
		Headers:         plainTable(d.Headers),
		Body:            d.Body,
	}
}

// rawTime returns the value on the wire; 0 for a timestamp that is not there.
func rawTime(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.Unix()
}

func plainTable(t amqp.Table) map[string]any {
	m := make(map[string]any, len(t))
	for k, v := range t {
		m[k] = plain(v)
	}
	return m
}

// plain turns a header value into one that encoding/json accepts.
func plain(v any) any {
	switch x := v.(type) {
	case amqp.Table:
		return plainTable(x)
	case []any:
		list := make([]any, len(x))
		for i := range x {
			list[i] = plain(x[i])
		}
		return list
	case time.Time:
		return x.Unix() // beyond the year 9999, JSON could not hold the date
	case amqp.Decimal:
		return decimalText(x)
	case float32:
		return plainFloat(float64(x))
	case float64:
		return plainFloat(x)
	}
	if n, ok := integer(v); ok {
		return n
	}
	return v
}

// plainFloat names what JSON has no number for: NaN and the infinities.
func plainFloat(f float64) any {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return strconv.FormatFloat(f, 'g', -1, 64)
	}
	return f
}

func decimalText(d amqp.Decimal) string {
	text := strconv.FormatInt(int64(d.Value), 10)
	scale := int(d.Scale)
	if scale == 0 {
		return text
	}
	digits, negative := strings.CutPrefix(text, "-")
	if missing := scale + 1 - len(digits); missing > 0 {
		digits = strings.Repeat("0", missing) + digits
	}
	point := len(digits) - scale
	text = digits[:point] + "." + digits[point:]
	if negative {
		return "-" + text
	}
	return text
}
