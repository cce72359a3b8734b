package confirm

import (
	"fmt"
	"os"
	"sync/atomic"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience bounds every wait for something that should happen at once, on however
// busy a machine.
const patience = 2 * time.Minute

// bench is a broker seen by one test, with queues of its own.
type bench struct {
	t    *testing.T
	url  string
	conn *amqp.Connection
}

var queues atomic.Int64

func newBench(t *testing.T) *bench {
	t.Helper()
	url := os.Getenv("RSCTL_AMQP_URL")
	if url == "" {
		t.Fatal("this test needs RabbitMQ: run make test, or set RSCTL_AMQP_URL=amqp://guest:guest@127.0.0.1:5672/")
	}
	conn, err := amqp.Dial(url)
	if err != nil {
		t.Fatalf("connect: %v", err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return &bench{t: t, url: url, conn: conn}
}

// on calls f with a channel of its own.
func (b *bench) on(f func(*amqp.Channel) error) {
	b.t.Helper()
	ch, err := b.conn.Channel()
	if err == nil {
		err = f(ch)
		_ = ch.Close()
	}
	if err != nil {
		b.t.Error(err)
	}
}

// queue declares a classic queue with a name of its own that is deleted after the
// test.
func (b *bench) queue(args amqp.Table) string {
	b.t.Helper()
	name := fmt.Sprintf("confirm-%d-%d", os.Getpid(), queues.Add(1))
	b.on(func(ch *amqp.Channel) error {
		_, err := ch.QueueDeclare(name, true, false, false, false, args)
		return err
	})
	b.t.Cleanup(func() {
		b.on(func(ch *amqp.Channel) error {
			_, err := ch.QueueDelete(name, false, false, false)
			return err
		})
	})
	return name
}

// fill puts one message into a queue.
func (b *bench) fill(queue string) {
	b.t.Helper()
	b.on(func(ch *amqp.Channel) error {
		if err := ch.Confirm(false); err != nil {
			return err
		}
		c, err := ch.PublishWithDeferredConfirm("", queue, true, false, amqp.Publishing{})
		if err == nil && !c.Wait() {
			err = fmt.Errorf("the broker refused a message for %s", queue)
		}
		return err
	})
}

// ids takes all messages out of a queue, the first one first.
func (b *bench) ids(queue string) (ids []string) {
	b.t.Helper()
	b.on(func(ch *amqp.Channel) error {
		for {
			d, ok, err := ch.Get(queue, true)
			if err != nil || !ok {
				return err
			}
			ids = append(ids, d.MessageId)
		}
	})
	return ids
}

func (b *bench) eventually(what string, is func() bool) {
	b.t.Helper()
	for end := time.Now().Add(patience); !is(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			b.t.Fatalf("waited %v for %s", patience, what)
		}
	}
}
