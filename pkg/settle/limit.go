package settle

import "fmt"

// DefaultReturns is the delivery limit of RabbitMQ 4 for a quorum queue that has
// none of its own. RabbitMQ 3.x has no default.
const DefaultReturns = 20

// A Limit is the delivery limit that the arguments of a quorum queue set: how
// often the server takes a message back before it gives the message up, to the
// queue's dead-letter route or to nobody. The zero value is a queue without one,
// where the default of the server holds.
type Limit struct {
	Given   bool
	Returns int64 // -1: see [Limit.On]
}

// On returns the limit as a server of the release major reads it; limited is
// false when a message may come back for ever. -1 is such a limit since RabbitMQ
// 4, and on 3.x the opposite: the first return drops the message.
func (l Limit) On(major int) (returns int64, limited bool) {
	switch {
	case l.Given && l.Returns >= 0:
		return l.Returns, true
	case l.Given && major < 4:
		return 0, true
	case l.Given, major < 4:
		return 0, false
	}
	return DefaultReturns, true
}

// reached is how many returns show in a table; 0 for a queue without a limit.
func (l Limit) reached() int {
	n, limited := l.On(4)
	if !limited {
		return 0
	}
	return clampInt(n)
}

// afterReturn says what becomes of a message that a quorum queue without the pair
// takes back.
func (p Policy) afterReturn(f Facts) string {
	switch {
	case p.Limit.Given && p.Limit.Returns < 0:
		return "back in the queue; the server counts it and has no limit there"
	case p.PastLimit(f):
		return "past its limit, the server " + p.givesUp()
	case p.PastDefault(f):
		return fmt.Sprintf("past %d returns, RabbitMQ 4 %s; RabbitMQ 3.x puts it back in the queue", DefaultReturns, p.givesUp())
	}
	return "back in the queue; the server counts it"
}

// PastLimit reports whether a delivery that is returned now passes the limit that
// the queue of p sets.
func (p Policy) PastLimit(f Facts) bool {
	return p.Type == Quorum && p.Limit.Given && p.Limit.Returns >= 0 && f.returns() >= p.Limit.Returns
}

// PastDefault is PastLimit for the default of RabbitMQ 4.
func (p Policy) PastDefault(f Facts) bool {
	return p.Type == Quorum && !p.Limit.Given && f.returns() >= DefaultReturns
}

// returns is what the server has counted since the last copy.
func (f Facts) returns() int64 { return int64(f.Attempt - 1 - f.Counted) }

func (p Policy) givesUp() string {
	if p.OwnRoute {
		return "moves it to the queue's dead-letter route"
	}
	return "drops it, unless a policy gives the queue a dead-letter route"
}
