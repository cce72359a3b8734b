package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/rsctl/rsctl/e2e/ledger"
)

// attempts is max_attempts of every queue here.
const attempts = 3

// A queue is one kind of queue under load; its name tells them apart.
type queue struct {
	name    string
	kind    string // classic or quorum
	delay   string // strategy; "" is none
	script  bool   // run the hook as a command instead of calling an endpoint
	plan    func(i int) ledger.Plan
	options string // more lines of the spec
	// deadKind is the type of the dead-letter queue; "" is the queue's own.
	deadKind string
	reply    bool // the handler's answer is published to reply_to
	// innocent queues have a light load of messages that succeed: no fault may
	// cost one of them anything, and none may wait longer than a moment.
	innocent bool
}

func plain(i int) ledger.Plan   { return ledger.Mix(i, ledger.Plain) }
func delayed(i int) ledger.Plan { return ledger.Mix(i, ledger.Delayed) }

var (
	classic = queue{name: "classic", kind: "classic", plan: plain}
	// Every copy that waits in the process is lost with it, so no fault that kills
	// a process has this one.
	timer      = queue{name: "timer", kind: "classic", delay: "timer", plan: delayed}
	classicTTL = queue{name: "classic-ttl", kind: "classic", delay: "dlx_ttl", plan: delayed, options: "    retry_original: ack\n"}
	quorum     = queue{name: "quorum", kind: "quorum", plan: plain}
	quorumTTL  = queue{name: "quorum-ttl", kind: "quorum", delay: "dlx_ttl", plan: delayed}
	levels     = queue{name: "levels", kind: "classic", delay: "levels", plan: delayed}
	requests   = queue{name: "requests", kind: "classic", plan: ledger.Healthy, reply: true}
	bystanders = []queue{
		{name: "innocent-classic", kind: "classic", plan: ledger.Healthy, innocent: true},
		{name: "innocent-quorum", kind: "quorum", plan: ledger.Healthy, innocent: true},
	}
	commands = queue{name: "commands", kind: "quorum", delay: "dlx_ttl", plan: delayed, script: true}
)

func (q queue) dead() string { return q.name + ".dead" }

// waiting is the queue's waiting queue; "" when it has none.
func (q queue) waiting() string {
	switch q.delay {
	case "dlx_ttl":
		return q.name + ".retry"
	case "levels":
		return "rsctl.v1.level-00" // no delay of the load is longer than a second
	}
	return ""
}

// specText is the spec of all queues.
func specText(queues []queue) string {
	var b strings.Builder
	b.WriteString("version: 1\nbroker: {url: \"${AMQP_URL}\"}\ndeclare_topology: true\nqueues:\n")
	for _, q := range queues {
		fmt.Fprintf(&b, "  - name: %s\n    type: %s\n    max_attempts: %d\n    dead_letter: %s\n", q.name, q.kind, attempts, q.dead())
		if q.delay != "" {
			fmt.Fprintf(&b, "    delay: %s\n", q.delay)
		}
		b.WriteString(q.options)
		if q.script {
			b.WriteString("    concurrency: 4\n    handler: {exec: [./hook.sh], timeout: 30s}\n")
		} else {
			b.WriteString("    concurrency: 16\n    handler: {http: \"${HOOK_URL}\", timeout: 30s" + replies(q) + "}\n")
		}
		if q.deadKind != "" {
			fmt.Fprintf(&b, "  - {name: %s, type: %s}\n", q.dead(), q.deadKind)
		}
	}
	return b.String()
}

func replies(q queue) string {
	if q.reply {
		return ", reply: true"
	}
	return ""
}

// innocent reports whether a message belongs to an innocent queue.
func innocent(id string) bool {
	return slices.ContainsFunc(bystanders, func(q queue) bool { return strings.HasPrefix(id, q.name+"/") })
}
