package broker

import (
	"fmt"
	"strconv"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rsctl/rsctl/pkg/topology"
)

func queueForm(q topology.Queue) form {
	return form{
		flags:     map[string]bool{"durable": q.Durable, "auto_delete": q.AutoDelete, "exclusive": q.Exclusive},
		arguments: table(q.Arguments),
	}
}

func exchangeForm(x topology.Exchange) form {
	return form{
		exchangeType: x.Type,
		flags:        map[string]bool{"durable": x.Durable, "auto_delete": x.AutoDelete, "internal": x.Internal},
		arguments:    table(x.Arguments),
	}
}

// show renders the wanted value of a flag or an argument.
func (f form) show(key string) string {
	if v, ok := f.flags[key]; ok {
		return strconv.FormatBool(v)
	}
	if key == keyExchangeType {
		return f.exchangeType
	}
	return show(f.arguments[key])
}

func show(v any) string {
	switch v := v.(type) {
	case nil:
		return "none"
	case string:
		return strconv.Quote(v)
	default:
		return fmt.Sprint(v)
	}
}

func declareQueueForm(ch *amqp.Channel, name string, f form) error {
	_, err := ch.QueueDeclare(name, f.flags["durable"], f.flags["auto_delete"], f.flags["exclusive"], false, f.arguments)
	return err
}

func declareExchangeForm(ch *amqp.Channel, name string, f form) error {
	return ch.ExchangeDeclare(name, f.exchangeType, f.flags["durable"], f.flags["auto_delete"], f.flags["internal"], false, f.arguments)
}

// coreType reports whether every server has the exchange type. Any other may
// cost the connection: 3.x answers 503 to one that it does not know.
func coreType(t string) bool {
	switch t {
	case "", "direct", "fanout", "topic", "headers":
		return true
	}
	return false
}

// table converts compiled arguments, whose integers are int64 already.
func table(args map[string]any) amqp.Table {
	out := make(amqp.Table, len(args)+1)
	for k, v := range args {
		out[k] = field(v)
	}
	return out
}

func field(v any) any {
	switch v := v.(type) {
	case map[string]any:
		return table(v)
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = field(v[i])
		}
		return out
	default:
		return v
	}
}
