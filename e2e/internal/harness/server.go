package harness

import (
	"fmt"
	"strings"
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"
)

// At returns a Broker for a server of the test's own; nothing is made on it.
func At(t testing.TB, url, managementURL string) *Broker {
	t.Helper()
	conn, err := amqp.Dial(url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return &Broker{URL: url, ManagementURL: managementURL, VHost: "/", t: t, conn: conn}
}

// AtLeast reports whether the server has the given version or a newer one.
func (b *Broker) AtLeast(major, minor int) bool {
	b.t.Helper()
	text, _ := b.conn.Properties["version"].(string)
	var x, y int
	if n, err := fmt.Sscanf(text, "%d.%d", &x, &y); n != 2 {
		b.t.Fatalf("the server says it is version %q: %v", text, err)
	}
	return x > major || x == major && y >= minor
}

// HasExchangeType reports whether the server knows a type of exchange. Asking
// for an unknown one closes a connection, so it is asked on one of its own.
func (b *Broker) HasExchangeType(kind string) bool {
	b.t.Helper()
	conn, err := amqp.Dial(b.URL)
	if err != nil {
		b.t.Fatal(err)
	}
	defer conn.Close()
	ch, err := conn.Channel()
	if err != nil {
		b.t.Fatal(err)
	}
	const name = "e2e-probe-of-a-type"
	err = ch.ExchangeDeclare(name, kind, false, true, false, false, amqp.Table{"x-delayed-type": "direct"})
	switch {
	case err == nil:
		if err := ch.ExchangeDelete(name, false, false); err != nil {
			b.t.Fatal(err)
		}
		return true
	case strings.Contains(err.Error(), "exchange type"):
		return false
	}
	b.t.Fatalf("probe for exchange type %s: %v", kind, err)
	return false
}
