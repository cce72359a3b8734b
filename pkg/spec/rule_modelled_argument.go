package spec

import "fmt"

// modelled are the arguments that have a key of their own, which the rules, the
// settlement and the checks know about.
var modelled = map[string]string{
	"x-queue-type":              "type",
	"x-dead-letter-exchange":    "dead_letter_exchange",
	"x-dead-letter-routing-key": "dead_letter_routing_key",
	"x-single-active-consumer":  "consumer: {single_active: true}",
	"x-delayed-retry-type":      "delay: {strategy: native, min: 1s, max: 1m}",
	"x-delayed-retry-min":       "delay: {strategy: native, min: 1s, max: 1m}",
	"x-delayed-retry-max":       "delay: {strategy: native, min: 1s, max: 1m}",
}

func checkModelledArgument(s *Spec, report report) {
	for i := range s.Queues {
		q := &s.Queues[i]
		for _, name := range sortedKeys(q.Arguments) {
			key := modelled[name]
			if name == "x-delivery-limit" && q.Type == Quorum && q.MaxAttempts > 0 {
				key = "max_attempts"
			}
			if key != "" {
				report(q.At("arguments."+name), fmt.Sprintf("argument %s is set by a key of the queue", name), "remove it and write "+key)
			}
		}
	}
}
