package spec

import (
	"fmt"
	"strings"
)

// ladderPrefix starts the names of the shared delay ladder.
const ladderPrefix = "rsctl.v1."

// derived is a name that a delay strategy makes for a queue.
type derived struct {
	name, kind string // kind: waiting queue, delayed exchange
	shown      string // the name for messages
	key        string // the key it comes from
	explicit   bool   // written in the spec
}

// derivedNames lists what the strategy of q adds to the broker.
func (q *Queue) derivedNames() []derived {
	d := q.Delay
	if d == nil || q.Name == "" || !q.sound("delay", "name") {
		return nil
	}
	switch d.Strategy {
	case "dlx_ttl":
		return q.waitingQueues()
	case "plugin_dme":
		if d.Exchange != "" {
			return []derived{{d.Exchange, "delayed exchange", q.as("delay.exchange", d.Exchange), "delay.exchange", true}}
		}
		return []derived{{q.Name + ".delay", "delayed exchange", q.shown() + ".delay", "delay", false}}
	}
	return nil
}

func (q *Queue) waitingQueues() []derived {
	if q.Delay.WaitingQueue != "" {
		return []derived{{q.Delay.WaitingQueue, "waiting queue", q.as("delay.waiting_queue", q.Delay.WaitingQueue), "delay.waiting_queue", true}}
	}
	const suffix = ".retry"
	if len(q.Delay.Tiers) == 0 {
		return []derived{{q.Name + suffix, "waiting queue", q.shown() + suffix, "delay", false}}
	}
	var out []derived
	for _, t := range q.Delay.Tiers {
		tier := suffix + "." + FormatDuration(t)
		out = append(out, derived{q.Name + tier, "waiting queue", q.shown() + tier, "delay.tiers", false})
	}
	return out
}

// Names that strategies derive obey the limits of every name and must not be
// the name of something else: copies would end in the wrong place.
func checkDerivedName(s *Spec, report report) {
	taken := s.takenNames()
	for i := range s.Queues {
		q := &s.Queues[i]
		for _, d := range q.derivedNames() {
			if len(d.name) > maxName {
				report(q.Pos, fmt.Sprintf("the %s of queue %q would be called %q, which has %d bytes of at most %d", d.kind, short(q.shown()), ends(d.shown), len(d.name), maxName),
					"shorten the queue's name, or name the place yourself under delay")
				continue
			}
			if message := taken.clash(d, q); message != "" {
				report(q.At(d.key), message, "rename one of them")
			}
		}
		checkLadderName(q, report)
	}
}

// ends shortens a derived name and keeps its suffix, which the user did not write.
func ends(s string) string {
	const tail = 16
	if len(s) <= shownMax {
		return s
	}
	return short(s[:len(s)-tail]) + s[len(s)-tail:]
}

func checkLadderName(q *Queue, report report) {
	if q.Delay == nil || q.Delay.Strategy != "levels" {
		return
	}
	if strings.HasPrefix(q.Name, ladderPrefix) {
		report(q.Pos, fmt.Sprintf("queue %q uses the prefix %s of the delay ladder", short(q.shown()), ladderPrefix), "rename it")
	}
}

// names maps each name to who has it, for people.
type names struct{ queues, exchanges map[string]string }

func (s *Spec) takenNames() names {
	n := names{map[string]string{}, map[string]string{}}
	for i := range s.Queues {
		q := &s.Queues[i]
		if q.DeadLetter != "" {
			n.queues[q.DeadLetter] = fmt.Sprintf("the dead-letter queue of %q", q.shown())
		}
	}
	for i := range s.Queues {
		q := &s.Queues[i]
		n.queues[q.Name] = fmt.Sprintf("the queue at line %d", q.Pos.Line)
		if q.External {
			n.queues[q.Name] = external
		}
	}
	for _, x := range s.Exchanges {
		n.exchanges[x.Name] = fmt.Sprintf("the exchange at line %d", x.Pos.Line)
		if x.External || x.Type == "x-delayed-message" {
			n.exchanges[x.Name] = external
		}
	}
	return n
}

// external marks what a strategy may use when the spec names it: it is there
// already, or is declared for that very use.
const external = "external"

// clash says who has the name of d already, and gives it to q. A delayed
// exchange routes by queue name, so that queues may share it; a waiting queue
// leads back to one queue only.
func (n names) clash(d derived, q *Queue) string {
	in, shared := n.queues, false
	if d.kind == "delayed exchange" {
		in, shared = n.exchanges, d.explicit
	}
	owner, found := in[d.name]
	mine := fmt.Sprintf("the %s of %q", d.kind, q.shown())
	switch {
	case !found:
		in[d.name] = mine
		if shared {
			in[d.name] = external
		}
		return ""
	case owner == external && d.explicit:
		if !shared {
			in[d.name] = mine
		}
		return ""
	case owner == external:
		owner = "declared in this spec"
	}
	return fmt.Sprintf("%s would be called %q, and so is %s", mine, d.shown, owner)
}
