package broker

import (
	"maps"

	"github.com/rsctl/rsctl/pkg/topology"
)

// complete reports whether v shows everything that copies may meet.
func (v *view) complete() bool {
	return v != nil && v.queues != nil && v.bindings != nil && v.exchanges != nil
}

// world is what the management API has shown, with what policies add.
func (v *view) world() topology.World {
	w := topology.World{Queues: map[string]map[string]any{}, Exchanges: v.exchanges, Bindings: v.routes, Complete: true}
	for name, q := range v.queues {
		args := map[string]any{}
		for key, value := range v.policyOf(name) {
			args["x-"+key] = value
		}
		maps.Copy(args, q.Arguments)
		if q.Type != "" {
			args[keyType] = q.Type
		}
		w.Queues[name] = args
	}
	return w
}
