package spec

import (
	"cmp"
	"iter"
	"maps"
	"slices"
)

// A rule checks one property of a spec. It reports every violation it finds and
// must not assume that another rule has passed, but it leaves keys alone whose
// value has already been refused.
type rule struct {
	id       string
	severity Severity
	check    func(s *Spec, report report)
}

// report takes one violation of the rule that is running.
type report func(at Pos, message, hint string)

// rules run in this order; their output is sorted by position afterwards.
var rules = []rule{
	{"unique-queue", Error, checkUniqueQueue},
	{"unique-exchange", Error, checkUniqueExchange},
	{"queue-type", Error, checkQueueType},
	{"quorum-options", Error, checkQuorumOptions},
	{"quorum-pair", Error, checkQuorumPair},
	{"quorum-declare", Error, checkQuorumDeclare},
	{"dead-letter-by", Error, checkDeadLetterBy},
	{"dead-letter-unreachable", Error, checkDeadLetterUnreachable},
	{"dead-letter-cycle", Error, checkDeadLetterCycle},
	{"dead-letter-conflict", Error, checkDeadLetterConflict},
	{"dead-letter-route", Error, checkDeadLetterRoute},
	{"delay-type", Error, checkDelayType},
	{"delay-keys", Error, checkDelayKeys},
	{"backoff-range", Error, checkBackoffRange},
	{"derived-name", Error, checkDerivedName},
	{"modelled-argument", Error, checkModelledArgument},
	{"argument-type", Error, checkArgumentType},
	{"consumer-exclusive", Error, checkConsumerExclusive},
	{"exclusive-declare", Error, checkExclusiveDeclare},
	{"batch-reply", Error, checkBatchReply},
	{"auth-external", Error, checkAuthExternal},
	{"spent-discarded", Warning, checkSpentDiscarded},
	{"retries-dead-letter", Warning, checkRetriesDeadLetter},
	{"timer-loses", Warning, checkTimerLoses},
	{"delay-dropped", Warning, checkDelayDropped},
	{"mixed-delays", Warning, checkMixedDelays},
	{"consumer-timeout", Warning, checkConsumerTimeout},
	{"quorum-limit", Warning, checkQuorumLimit},
	{"misspelt-argument", Warning, checkMisspeltArgument},
	{"prefetch-concurrency", Warning, checkPrefetchConcurrency},
	{"prefetch-memory", Warning, checkPrefetchMemory},
	{"worker-concurrency", Warning, checkWorkerConcurrency},
	{"ordered-prefetch", Warning, checkOrderedPrefetch},
	{"batch-prefetch", Warning, checkBatchPrefetch},
	{"prefetch-risk", Warning, checkPrefetchRisk},
	{"goes-unused", Warning, checkGoesUnused},
	{"tls-unused", Warning, checkTLSUnused},
	{"management-plain", Warning, checkManagementPlain},
}

func (p *parser) check(s *Spec) {
	for _, r := range rules {
		r.check(s, func(at Pos, message, hint string) {
			p.add(Problem{Pos: at, Severity: r.severity, Rule: r.id, Message: message, Hint: hint})
		})
	}
}

// sound reports whether none of the keys has a refused value.
func (q *Queue) sound(keys ...string) bool {
	return !slices.ContainsFunc(keys, func(k string) bool { return q.bad[k] })
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// ofType yields the queues of one type.
func (s *Spec) ofType(t QueueType) iter.Seq[*Queue] {
	return func(yield func(*Queue) bool) {
		for i := range s.Queues {
			if q := &s.Queues[i]; q.Type == t && q.Name != "" && q.sound("type") && !yield(q) {
				return
			}
		}
	}
}

// paired reports whether q has a cap and a queue for spent messages.
func (q *Queue) paired() bool { return q.MaxAttempts > 0 && q.DeadLetter != "" }

// as returns the text of a key for messages: the name that is used, or ${…} as
// written when it was interpolated.
func (q *Queue) as(key, value string) string {
	if source, ok := q.written[key]; ok {
		return source
	}
	return value
}

// shown is the queue's name for messages. A name that could not be read has a
// problem of its own.
func (q *Queue) shown() string { return cmp.Or(q.as("name", q.Name), "(no name)") }

// shown is the exchange's name for messages.
func (x *Exchange) shown() string {
	if x.written != "" {
		return x.written
	}
	return x.Name
}
