package topology

import (
	"math"
	"time"

	"github.com/rsctl/rsctl/pkg/settle"
	"github.com/rsctl/rsctl/pkg/spec"
)

// DelayedMessageType is the exchange type of the delayed-message plugin.
const DelayedMessageType = "x-delayed-message"

// maxXDelay is the longest delay the plugin holds: it delivers a message with a
// larger x-delay at once.
const maxXDelay = math.MaxUint32 * time.Millisecond

// pluginDME lets an exchange of the delayed-message plugin hold the copy. The
// plugin routes it, with its routing key, when the x-delay header has passed.
type pluginDME struct{}

func (pluginDME) exchange(q *spec.Queue) string {
	if q.Delay.Exchange != "" {
		return q.Delay.Exchange
	}
	return q.Name + ".delay"
}

func (p pluginDME) needs(q *spec.Queue) fragment {
	name, origin := p.exchange(q), Origin{Role: RoleDelay}
	return fragment{
		exchanges: []Exchange{{
			Name: name, Type: DelayedMessageType, Durable: true,
			Arguments: map[string]any{"x-delayed-type": "direct"}, Origin: origin,
		}},
		bindings: []Binding{{Source: name, Destination: q.Name, RoutingKey: q.Name, Origin: origin}},
	}
}

func (p pluginDME) delay(q *spec.Queue) settle.Delay {
	name, key := p.exchange(q), q.Name
	return settle.Delay{Mode: settle.ModeCopy, Max: maxXDelay, Route: func(d time.Duration) settle.Target {
		// The plugin returns a message it holds as unroutable, and delivers it
		// later all the same: mandatory would send it twice.
		return settle.Target{Exchange: name, Key: key, XDelay: ceil(d, time.Millisecond), NotMandatory: true}
	}}
}
