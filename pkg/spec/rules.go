package spec

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
