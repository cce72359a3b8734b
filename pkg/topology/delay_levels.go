package topology

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"time"

	"github.com/rsctl/rsctl/pkg/settle"
	"github.com/rsctl/rsctl/pkg/spec"
)

// The ladder is shared by every queue of a vhost and outlives a release, so its
// names carry a version: another shape would be another ladder.
const (
	ladderPrefix  = "rsctl.v1."
	ladderDeliver = ladderPrefix + "deliver"
	ladderNowhere = ladderPrefix + "undelivered"
	ladderLevels  = 28
	// maxLadder is the longest delay: every level once, about eight years and a
	// half.
	maxLadder = (1<<ladderLevels - 1) * time.Second
)

// levels lets the copy climb down a ladder of waiting queues, one fixed TTL per
// level: 1 s, 2 s, 4 s, … 2^27 s. Each level has a topic exchange of its name.
// The routing key holds one word per level, highest first: a 1 parks the copy in
// the level's queue, which dead-letters it to the next level's exchange; a 0
// sends it on at once. Behind the last level, the deliver exchange finds the
// queue by the rest of the key.
//
// What no queue takes any more goes to the undelivered queue: an unroutable
// message would stay in its level, and a few dozen of them would stop the level
// for everybody, because at-least-once dead-lettering works on a bounded number
// at a time.
type levels struct{}

func (levels) needs(q *spec.Queue) fragment {
	f := ladder()
	f.bindings = append(f.bindings, Binding{
		Source: ladderDeliver, Destination: q.Name,
		RoutingKey: strings.Repeat("*.", ladderLevels) + ladderAddress(q.Name),
	})
	for i := range f.exchanges {
		f.exchanges[i].Origin.Role = RoleLadder
	}
	for i := range f.queues {
		f.queues[i].Origin.Role = RoleLadder
	}
	for i := range f.bindings {
		f.bindings[i].Origin.Role = RoleLadder
	}
	return f
}

func (levels) delay(q *spec.Queue) settle.Delay {
	name := q.Name
	return settle.Delay{Mode: settle.ModeCopy, Max: maxLadder, Route: func(d time.Duration) settle.Target {
		level, key := ladderRoute(d, name)
		return settle.Target{Exchange: levelName(level), Key: key, Queue: levelName(level)}
	}}
}

// ladderRoute returns the highest level that d needs and the routing key that
// leads from there to queue. Delays are rounded up to whole seconds, at least
// one, and capped at the top of the ladder.
func ladderRoute(d time.Duration, queue string) (level int, key string) {
	secs := int64(min(max(d, 1), maxLadder))
	secs = (secs + int64(time.Second) - 1) / int64(time.Second)
	var b strings.Builder
	for n := ladderLevels - 1; n >= 0; n-- {
		bit := secs >> n & 1
		if bit == 1 && level == 0 {
			level = n
		}
		b.WriteByte('0' + byte(bit))
		b.WriteByte('.')
	}
	return level, b.String() + ladderAddress(queue)
}

// ladderAddress is a queue's name as the last words of a routing key. Names
// differ in their address, because "*", "#" and "%" are escaped: a topic
// exchange reads the first two as wildcards. A name that leaves no room for the
// bits (a routing key has 255 bytes) is replaced by its hash; "%h" cannot be an
// escape.
func ladderAddress(queue string) string {
	address := strings.NewReplacer("%", "%25", "*", "%2A", "#", "%23").Replace(queue)
	if len(address) > 255-2*ladderLevels {
		sum := sha256.Sum256([]byte(queue))
		return "%h" + hex.EncodeToString(sum[:])
	}
	return address
}

func levelName(n int) string { return fmt.Sprintf("%slevel-%02d", ladderPrefix, n) }

// ladder is the shared part, from the last exchange to the first level.
func ladder() fragment {
	f := fragment{
		exchanges: []Exchange{
			{Name: ladderNowhere, Type: "fanout", Durable: true},
			{Name: ladderDeliver, Type: "topic", Durable: true,
				Arguments: map[string]any{"alternate-exchange": ladderNowhere}},
		},
		queues: []Queue{nowhere()},
		bindings: []Binding{
			{Source: ladderNowhere, Destination: ladderNowhere},
		},
	}
	next := ladderDeliver
	for n := range ladderLevels {
		name := levelName(n)
		above := strings.Repeat("*.", ladderLevels-1-n)
		f.exchanges = append(f.exchanges, Exchange{Name: name, Type: "topic", Durable: true})
		f.queues = append(f.queues, ladderQueue(name, with(atLeastOnce, map[string]any{
			"x-message-ttl":          (int64(1) << n) * 1000,
			"x-dead-letter-exchange": next,
		})))
		f.bindings = append(f.bindings,
			Binding{Source: name, Destination: name, RoutingKey: above + "1.#"},
			Binding{Source: name, Destination: next, RoutingKey: above + "0.#", ToExchange: true})
		next = name
	}
	return f
}

// nowhere keeps what no queue takes, as a dead-letter queue does.
func nowhere() Queue {
	q := ladderQueue(ladderNowhere, nil)
	q.AcceptExisting = true
	return q
}

func ladderQueue(name string, args map[string]any) Queue {
	return Queue{
		Name: name, Type: settle.Quorum, Durable: true,
		Arguments: with(args, map[string]any{"x-queue-type": "quorum"}),
	}
}
