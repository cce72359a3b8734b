package spec

// argumentLimit is the argument by which a quorum queue gives a message up.
const argumentLimit = "x-delivery-limit"

// DeliveryLimit returns the limit that the spec sets for the returns of a quorum
// queue: one less than max_attempts with the pair, because the first delivery is
// no return, else the argument x-delivery-limit. What a number means on which
// server, and what holds without one, says settle.Limit.
func (q *Queue) DeliveryLimit() (returns int64, given bool) {
	if q.Type != Quorum {
		return 0, false
	}
	if q.paired() {
		return int64(q.MaxAttempts) - 1, true
	}
	returns, given = q.Arguments[argumentLimit].(int64)
	return returns, given
}
