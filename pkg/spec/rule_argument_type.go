package spec

import "fmt"

// Arguments that servers take silently in the wrong type, and then ignore, and
// arguments that a type of queue refuses.
func checkArgumentType(s *Spec, report report) {
	for i := range s.Queues {
		q := &s.Queues[i]
		if !q.sound("arguments") {
			continue
		}
		for _, name := range sortedKeys(q.Arguments) {
			if message := argumentFault(q, name); message != "" {
				report(q.At("arguments."+name), message, "")
			}
		}
	}
}

// wholeNumbers are the arguments that count something, with their least value.
var wholeNumbers = map[string]int64{
	"x-message-ttl": 0, "x-expires": 1, "x-max-length": 0, "x-max-length-bytes": 0,
	"x-max-priority": 1, "x-delivery-limit": -1, "x-consumer-timeout": 0,
}

func argumentFault(q *Queue, name string) string {
	if q.Type == Classic && (name == "x-delivery-limit" || name == "x-dead-letter-strategy") {
		return fmt.Sprintf("argument %s works on quorum queues only, and queue %q is classic", name, q.shown())
	}
	least, known := wholeNumbers[name]
	if !known {
		return ""
	}
	if n, ok := q.Arguments[name].(int64); !ok || n < least {
		return fmt.Sprintf("argument %s must be a whole number of %d or more, without quotes", name, least)
	}
	return ""
}
