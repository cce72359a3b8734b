package confirm

import (
	"slices"
	"sync"
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"
)

func TestPublishConnTellsWhenTheBrokerBlocksPublishing(t *testing.T) {
	t.Parallel()
	var told []string
	blocked := make(chan amqp.Blocking)
	c := &publishConn{blocked: blocked, events: Events{
		Blocked:   func(reason string) { told = append(told, reason) },
		Unblocked: func() { told = append(told, "goes on") },
	}}
	var watching sync.WaitGroup
	watching.Go(c.watchBlocked)
	blocked <- amqp.Blocking{Active: true, Reason: "low on memory"}
	blocked <- amqp.Blocking{}
	blocked <- amqp.Blocking{Active: true, Reason: "low on disk"}
	close(blocked) // the connection is lost
	watching.Wait()
	if want := []string{"low on memory", "goes on", "low on disk", "goes on"}; !slices.Equal(told, want) {
		t.Errorf("told %q, want %q", told, want)
	}
	if c.isBlocked() {
		t.Error("a connection that is gone blocks")
	}
}
