package ledger

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// Found are the ids that were found in queues after the run, once per message.
type Found struct {
	Work    []string
	Waiting []string
	Dead    []string
}

// An Account says where every message is. Each id is counted once, in the first
// place of this order that has it: acked, work queue, waiting place, dead-letter
// queue, deleted with its queue, lost.
type Account struct {
	In, Acked, Work, Waiting, Dead, Deleted int
	Lost                                    []Missing
	// Duplicates are endings beyond the first of an id: successful runs, and
	// messages that lie in any queue.
	Duplicates int
	// Runs are runs of hooks, OverCap those beyond the cap of their message.
	Runs, OverCap int
	// HighestAttempt is the largest attempt number that a hook was told.
	HighestAttempt int
	// Latest is the longest that an innocent message waited for its first run.
	Latest time.Duration
	// HealthyDead are dead letters that would have been acked within the cap.
	HealthyDead []string
}

// A Missing message is nowhere.
type Missing struct {
	ID   string
	Runs int
	Last string // outcome of the last run that ended; "" when none did
}

// String tells what is known of a missing message.
func (m Missing) String() string {
	return fmt.Sprintf("%s (%d runs, the last answered %q)", m.ID, m.Runs, m.Last)
}

// Rules are what an account is held against.
type Rules struct {
	Cap int
	// Gone says whether an operator has deleted a message with its queue, given
	// when it was published and the outcome of its last run; nil: never. It is
	// asked only about messages that are nowhere else.
	Gone func(id string, published time.Time, last string) bool
	// Innocent says of which messages the wait for the first run is measured; nil:
	// of none.
	Innocent func(id string) bool
}

// Account counts.
func (l *Ledger) Account(found Found, rules Rules) (Account, error) {
	runs, err := l.read()
	if err != nil {
		return Account{}, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	c := counter{rules: rules, runs: runs, work: tally(found.Work), waiting: tally(found.Waiting), dead: tally(found.Dead)}
	a := Account{In: len(l.in)}
	for id, e := range l.in {
		c.place(&a, id, e)
	}
	slices.SortFunc(a.Lost, func(x, y Missing) int { return cmp.Compare(x.ID, y.ID) })
	return a, nil
}

// counter holds what is known while the ids are gone through.
type counter struct {
	rules               Rules
	runs                map[string]*history
	work, waiting, dead map[string]int
}

func (c *counter) place(a *Account, id string, e entry) {
	h := c.runs[id]
	if h == nil {
		h = &history{}
	}
	a.Runs += h.starts
	a.OverCap += max(0, h.starts-c.rules.Cap)
	a.HighestAttempt = max(a.HighestAttempt, h.highest)
	a.Duplicates += max(0, h.acks+c.work[id]+c.waiting[id]+c.dead[id]-1)
	if c.rules.Innocent != nil && c.rules.Innocent(id) && !h.first.IsZero() {
		a.Latest = max(a.Latest, h.first.Sub(e.at))
	}
	if c.dead[id] > 0 && e.plan.Times < c.rules.Cap {
		a.HealthyDead = append(a.HealthyDead, id)
	}
	switch {
	case h.acks > 0:
		a.Acked++
	case c.work[id] > 0:
		a.Work++
	case c.waiting[id] > 0:
		a.Waiting++
	case c.dead[id] > 0:
		a.Dead++
	case c.rules.Gone != nil && c.rules.Gone(id, e.at, h.last):
		a.Deleted++
	default:
		a.Lost = append(a.Lost, Missing{id, h.starts, h.last})
	}
}

func tally(ids []string) map[string]int {
	n := map[string]int{}
	for _, id := range ids {
		n[id]++
	}
	return n
}
