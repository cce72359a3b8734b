package runtime

import (
	"cmp"
	"context"
	"slices"

	amqp "github.com/rabbitmq/amqp091-go"
)

const (
	// maxPerConnection is how many queues share a connection. RabbitMQ and the
	// client library allow 2,047 channels on one, and a queue needs up to four: one
	// that consumes, one that ends while its handlers still run, one that looks for
	// the dead-letter queue, and one for a question.
	maxPerConnection  = 500
	channelsEachQueue = 4
)

// shard is the queues that one connection at a time consumes.
type shard struct {
	consumers  []*consumer
	conn       *amqp.Connection // the first one, when it is open already
	open       func(context.Context) (*amqp.Connection, error)
	background func(lifetimes, *session) // runs beside the consumers of each session
}

func (sh *shard) connection(ctx context.Context) (*amqp.Connection, error) {
	if conn := sh.conn; conn != nil {
		sh.conn = nil
		return conn, nil
	}
	return sh.open(ctx)
}

// perConnection is how many queues the channels of conn are enough for.
func perConnection(conn *amqp.Connection) int {
	if limit := int(conn.Config.ChannelMax); limit > 0 {
		return min(max(limit/channelsEachQueue, 1), maxPerConnection)
	}
	return maxPerConnection
}

// split deals the consumers out, in their order.
func split(consumers []*consumer, each int) [][]*consumer {
	shards := slices.Collect(slices.Chunk(consumers, each))
	if len(shards) == 0 {
		return [][]*consumer{nil} // without queues the run still waits for its end
	}
	return shards
}

// sortOwned puts queues that belong to their connection first: a drain counts
// their messages on the first connection.
func sortOwned(consumers []*consumer) {
	slices.SortStableFunc(consumers, func(a, b *consumer) int { return cmp.Compare(connectionOrder(a), connectionOrder(b)) })
}

func connectionOrder(c *consumer) int {
	if c.q.Declare != nil {
		return 0
	}
	return 1
}

func queueNames(consumers []*consumer) []string {
	names := make([]string, len(consumers))
	for i, c := range consumers {
		names[i] = c.queue
	}
	return names
}
