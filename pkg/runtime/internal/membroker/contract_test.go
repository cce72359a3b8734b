package membroker_test

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"go.uber.org/goleak"

	"github.com/rsctl/rsctl/pkg/runtime/internal/membroker"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience bounds every wait for something that should happen at once.
const patience = 2 * time.Minute

// TestContract runs every row on the broker in memory, as each series, and on a
// real one, so that the first says nothing that the second does not.
func TestContract(t *testing.T) {
	t.Parallel()
	for _, row := range rows {
		for _, s := range []membroker.Series{membroker.V310, membroker.V40, membroker.V43} {
			t.Run(fmt.Sprintf("%s/memory %d.%d", row.name, s.Major, s.Minor), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					b := membroker.New(s)
					t.Cleanup(b.Close)
					row.run(newParty(t, func() (*amqp.Connection, error) { return b.Dial(amqp.Config{}) }))
				})
			})
		}
		t.Run(row.name+"/real", func(t *testing.T) {
			t.Parallel()
			url := os.Getenv("RSCTL_AMQP_URL")
			if url == "" {
				t.Fatal("this test needs RabbitMQ: run make test, or set RSCTL_AMQP_URL=amqp://guest:guest@127.0.0.1:5672/")
			}
			row.run(newParty(t, func() (*amqp.Connection, error) { return amqp.Dial(url) }))
		})
	}
}

// party is a client of either broker.
type party struct {
	*testing.T
	dial func() (*amqp.Connection, error)
	conn *amqp.Connection
	ch   *amqp.Channel
	at43 bool // the broker is of series 4.3 or later
}

func newParty(t *testing.T, dial func() (*amqp.Connection, error)) *party {
	p := &party{T: t, dial: dial}
	p.conn = p.connect()
	p.ch = p.channel(p.conn)
	version := strings.Split(fmt.Sprint(p.conn.Properties["version"]), ".")
	major, err := strconv.Atoi(version[0])
	p.must(err)
	minor, err := strconv.Atoi(version[1])
	p.must(err)
	p.at43 = major > 4 || major == 4 && minor >= 3
	return p
}

func (p *party) must(err error) {
	p.Helper()
	if err != nil {
		p.Fatal(err)
	}
}

func (p *party) connect() *amqp.Connection {
	p.Helper()
	conn, err := p.dial()
	p.must(err)
	p.Cleanup(func() { _ = conn.Close() })
	return conn
}

func (p *party) channel(conn *amqp.Connection) *amqp.Channel {
	p.Helper()
	ch, err := conn.Channel()
	p.must(err)
	return ch
}

var names atomic.Int64

func (p *party) name() string {
	return fmt.Sprintf("contract-%d-%d", os.Getpid(), names.Add(1))
}

func (p *party) queue(kind string, args amqp.Table) string {
	p.Helper()
	name := p.name()
	all := amqp.Table{"x-queue-type": kind}
	for k, v := range args {
		all[k] = v
	}
	_, err := p.channel(p.conn).QueueDeclare(name, true, false, false, false, all)
	p.must(err)
	p.Cleanup(func() {
		if conn, err := p.dial(); err == nil {
			if ch, err := conn.Channel(); err == nil {
				_, _ = ch.QueueDelete(name, false, false, false)
			}
			_ = conn.Close()
		}
	})
	return name
}

// publish sends messages with these ids to a queue, and waits for their confirms.
func (p *party) publish(queue string, ids ...string) {
	p.Helper()
	for _, id := range ids {
		if !p.send("", queue, amqp.Publishing{MessageId: id}) {
			p.Fatalf("message %s was refused", id)
		}
	}
}

// send reports whether the broker has acked a message.
func (p *party) send(exchange, key string, m amqp.Publishing) bool {
	p.Helper()
	ch := p.channel(p.conn)
	defer ch.Close()
	p.must(ch.Confirm(false))
	confirm, err := ch.PublishWithDeferredConfirm(exchange, key, true, false, m)
	p.must(err)
	return confirm.Wait()
}

func (p *party) consume(ch *amqp.Channel, queue string, prefetch int) <-chan amqp.Delivery {
	p.Helper()
	p.must(ch.Qos(prefetch, 0, false))
	deliveries, err := ch.Consume(queue, "tag", false, false, false, false, nil)
	p.must(err)
	return deliveries
}

func (p *party) next(from <-chan amqp.Delivery) amqp.Delivery {
	p.Helper()
	return receive(p, from, "a delivery")
}

func receive[T any](p *party, from <-chan T, what string) (v T) {
	p.Helper()
	select {
	case v, ok := <-from:
		if !ok {
			p.Fatalf("waiting for %s: the channel has ended", what)
		}
		return v
	case <-time.After(patience):
		p.Fatalf("waited %v for %s", patience, what)
	}
	return v
}

func (p *party) take(from <-chan amqp.Delivery, n int) []amqp.Delivery {
	p.Helper()
	var got []amqp.Delivery
	for range n {
		got = append(got, p.next(from))
	}
	return got
}

// get waits for a message and acks it.
func (p *party) get(queue string) (d amqp.Delivery) {
	p.Helper()
	p.eventually("a message in "+queue, func() (ok bool) {
		var err error
		d, ok, err = p.ch.Get(queue, true)
		p.must(err)
		return ok
	})
	return d
}

func (p *party) ready(queue string) int {
	p.Helper()
	q, err := p.ch.QueueDeclarePassive(queue, true, false, false, false, nil)
	p.must(err)
	return q.Messages
}

func (p *party) eventuallyReady(queue string, n int) {
	p.Helper()
	p.eventually(fmt.Sprintf("%d ready messages", n), func() bool { return p.ready(queue) == n })
}

func (p *party) eventually(what string, cond func() bool) {
	p.Helper()
	for deadline := time.Now().Add(patience); !cond(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			p.Fatalf("waited %v for %s", patience, what)
		}
	}
}

// refused checks the reply code of an error and the beginning of its text.
func (p *party) refused(err error, code int, text string) {
	p.Helper()
	var ex *amqp.Error
	if !errors.As(err, &ex) || ex.Code != code || !ex.Server || !strings.HasPrefix(ex.Reason, text) {
		p.Errorf("the broker says %v, want %d %s", err, code, text)
	}
	if p.conn.IsClosed() {
		p.Error("it cost the connection")
	}
}

func ids(ds []amqp.Delivery) (s string) {
	for _, d := range ds {
		s += d.MessageId
	}
	return s
}

// dead is the first entry of a message's x-death.
func (p *party) dead(d amqp.Delivery) amqp.Table {
	p.Helper()
	all, _ := d.Headers["x-death"].([]any)
	if len(all) == 0 {
		p.Fatalf("message %s has no x-death: %v", d.MessageId, d.Headers)
	}
	return all[0].(amqp.Table)
}
