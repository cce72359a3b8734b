package spec

import (
	"fmt"
	"slices"
)

// Servers take an argument of any name and ignore those that they do not know.
func checkMisspeltArgument(s *Spec, report report) {
	for i := range s.Queues {
		q := &s.Queues[i]
		if !q.sound("arguments") {
			continue
		}
		for _, name := range sortedKeys(q.Arguments) {
			if near := misspelt(name, queueArguments); near != "" {
				report(q.At("arguments."+name), fmt.Sprintf("argument %s is not known to RabbitMQ, which ignores it", quoteShort(name)), fmt.Sprintf("did you mean %q?", near))
			}
		}
	}
	for i := range s.Exchanges {
		x := &s.Exchanges[i]
		for _, name := range sortedKeys(x.Arguments) {
			if near := misspelt(name, exchangeArguments); near != "" {
				report(x.Pos, fmt.Sprintf("argument %s of exchange %q is not known to RabbitMQ, which ignores it", quoteShort(name), x.shown()), fmt.Sprintf("did you mean %q?", near))
			}
		}
	}
}

// misspelt returns the argument that was probably meant. A name that is like none
// of them may belong to a plugin.
func misspelt(name string, known []string) string {
	if slices.Contains(known, name) {
		return ""
	}
	return nearest(name, known)
}

// queueArguments are those that a RabbitMQ server of any release knows.
var queueArguments = []string{
	"x-queue-type", "x-queue-mode", "x-queue-version", "x-queue-leader-locator", "x-queue-master-locator",
	"x-message-ttl", "x-expires", "x-max-length", "x-max-length-bytes", "x-overflow", "x-max-priority",
	"x-max-in-memory-length", "x-max-in-memory-bytes", "x-single-active-consumer", "x-consumer-timeout",
	"x-dead-letter-exchange", "x-dead-letter-routing-key", "x-dead-letter-strategy", argumentLimit,
	"x-delayed-retry-type", "x-delayed-retry-min", "x-delayed-retry-max",
	"x-quorum-initial-group-size", "x-quorum-target-group-size", "x-initial-cluster-size",
	"x-max-age", "x-stream-max-segment-size-bytes", "x-stream-filter-size-bytes",
	"x-ha-policy", "x-cancel-on-ha-failover",
}

// exchangeArguments are those of RabbitMQ itself and of the plugins it comes with.
var exchangeArguments = []string{"alternate-exchange", "x-delayed-type", "hash-header", "hash-property", "x-recent-history-length"}
