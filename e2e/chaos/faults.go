package main

import (
	"context"

	"github.com/rsctl/rsctl/e2e/ledger"
)

// A fault is something that goes wrong while rsctl works under full load.
type fault struct {
	name      string
	where     where
	queues    []queue
	processes int // rsctl run processes; 0 is one
	rounds    int // least strikes of a long play
	// harmless says that no healthy message may be dead-lettered, but for one for
	// each process that a strike has ended.
	harmless bool
	// hides says that queues which dead-letter at least once may be left with
	// messages that they do not show, until they try again.
	hides bool
	// query is added to the URL that rsctl uses. A short heartbeat costs a busy
	// machine connections, so only what is about silence has one.
	query string
	// login returns the URL that rsctl uses instead of the broker's own user.
	login func(context.Context, *scenario) (string, error)
	// prepare runs before the processes start; what it returns undoes it.
	prepare preparation
	// strike makes it go wrong once and mends it.
	strike func(context.Context, *scenario, plan) error
}

// where says which broker a fault needs.
type where int

const (
	anyBroker  where = iota // a virtual host of its own is enough
	ownNode                 // it changes settings of the whole node
	mortalNode              // it ends the node
	cluster                 // three nodes
)

var (
	all = []queue{classic, timer, classicTTL, quorum, quorumTTL}
	// A classic waiting queue dead-letters at most once: what is on its way when the
	// node dies is gone.
	atLeastOnce = []queue{classic, timer, levels, quorum, quorumTTL}
	noLoss      = []queue{classic, classicTTL, quorum, quorumTTL} // when a process is killed
)

// withClassicDead gives every queue a classic dead-letter queue, which the broker
// can delete on the condition that it is empty.
func withClassicDead(queues []queue) []queue {
	var out []queue
	for _, q := range queues {
		q.deadKind = "classic"
		out = append(out, q)
	}
	return out
}

type preparation func(context.Context, *scenario) (undo func() error, err error)

// both is for preparations that have nothing to undo.
func both(first, second preparation) preparation {
	return func(ctx context.Context, s *scenario) (func() error, error) {
		if _, err := first(ctx, s); err != nil {
			return nil, err
		}
		return second(ctx, s)
	}
}

// hostile adds the innocent queues, which what happens to the others must not
// concern.
func hostile(queues ...queue) []queue { return append(queues[:len(queues):len(queues)], bystanders...) }

func healthy(q queue) queue {
	q.plan = ledger.Healthy
	return q
}

// faults are all of them; the names are the rows of the table.
func faults() []fault {
	return []fault{
		{name: "rsctl killed", queues: append([]queue{commands}, noLoss...), strike: killRsctl},
		{name: "one of two rsctl killed", queues: noLoss, processes: 2, strike: killRsctl},
		{name: "one of five rsctl killed", queues: noLoss, processes: 5, strike: killRsctl},
		{name: "rolling restart of five", queues: []queue{healthy(quorum), healthy(quorumTTL), healthy(classic)}, processes: 5, rounds: 10, strike: rollingRestart},
		{name: "connections cut", queues: all, strike: cutConnections},
		{name: "network black hole", queues: all, query: "?heartbeat=1", strike: blackHole},
		{name: "confirms never come", queues: all, strike: noConfirms},
		{name: "messages that no client can decode", harmless: true, queues: hostile(classic, classicTTL, quorum, quorumTTL), strike: undecodable},
		{name: "message that kills its process", harmless: true, queues: hostile(healthy(quorum), healthy(quorumTTL)), strike: killer},
		{name: "forged reply address", harmless: true, queues: hostile(requests, classic, quorumTTL), strike: forgeReplies},
		{name: "flood of large bodies", harmless: true, queues: hostile(classic, quorum), strike: floodBodies},
		{name: "log reader dead", harmless: true, queues: hostile(classic, timer, classicTTL, healthy(quorum), healthy(quorumTTL)), strike: loseLogReader},
		{name: "log reader stuck", harmless: true, queues: hostile(all...), strike: stickLogReader},
		{name: "descriptors used up", harmless: true, queues: hostile(commands, classic, quorum), strike: useUpDescriptors},
		{name: "dead-letter queue deleted", queues: withClassicDead(all), strike: deleteDeadLetterQueues},
		{name: "dead-letter queue full", where: ownNode, queues: withClassicDead(all), prepare: both(deadLetterAtLeastOnce, refuseWhenFull(`\\.dead$`)), strike: fillUp(`\\.dead$`)},
		{name: "waiting queue deleted", queues: []queue{classicTTL, quorumTTL}, strike: deleteWaitingQueues},
		{name: "waiting queue full", queues: []queue{classicTTL, quorumTTL}, prepare: refuseWhenFull(`\\.retry$`), strike: fillUp(`\\.retry$`)},
		{name: "no permission for copies", harmless: true, queues: hostile(all...), login: limitedUser, strike: forbidCopies},
		{name: "work queue deleted", hides: true, where: ownNode, queues: all, strike: deleteWorkQueues},
		{name: "consumer timeout", where: ownNode, queues: all, prepare: shortConsumerTimeout, strike: stallHooks},
		{name: "memory alarm", where: ownNode, queues: all, strike: memoryAlarm},
		{name: "disk alarm", where: ownNode, queues: all, strike: diskAlarm},
		{name: "broker restarted", hides: true, where: mortalNode, queues: all, prepare: deadLetterAtLeastOnce, strike: restartBroker},
		{name: "broker killed", hides: true, where: mortalNode, queues: atLeastOnce, prepare: deadLetterAtLeastOnce, strike: killBroker},
		{name: "leader of three killed", hides: true, where: cluster, queues: []queue{quorum, quorumTTL, classic}, processes: 2, rounds: 2, prepare: deadLetterAtLeastOnce, strike: killLeader},
	}
}
