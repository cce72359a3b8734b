package runtime

import "time"

// lonerPatience is how long a message that runs alone, and has survived, may stay
// unsettled before the next one may come: its retry may wait for hours.
const lonerPatience = time.Second

// loner follows the message that runs alone. The zero loner follows none.
type loner struct {
	ran  chan struct{}
	late <-chan time.Time
}

func newLoner(d *delivery) loner {
	d.ran = make(chan struct{}, 1)
	return loner{ran: d.ran}
}

func (l *loner) wait() { *l = loner{late: time.After(lonerPatience)} }
