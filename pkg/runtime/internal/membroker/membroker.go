// Package membroker is a RabbitMQ in memory, for tests in virtual time.
//
// It speaks AMQP 0-9-1 over a connection that is memory, too, so that everything
// above the socket is what runs in production: the client library with its
// channels and races, [github.com/rsctl/rsctl/pkg/runtime] and its Config.Dial. All
// that blocks in it blocks on the memory of its bubble, as testing/synctest wants
// it, and what it does to messages it does under one lock, in one order.
//
// It knows queues (classic and quorum, with delivery counts and limits), prefetch,
// consumers, basic.get, confirms, returns, TTL and length limits, dead-lettering,
// and direct, fanout and topic exchanges. The contract test runs the same rows on
// it and on a real broker. It does not know clusters, policies, priorities, streams, direct reply-to,
// permissions, x-death of messages that are published with one, or that RabbitMQ
// 4.3 carries a delivery count along to the dead-letter queue: what is about those
// belongs on a real broker.
package membroker

import (
	"net"
	"sync"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// URL is what a client of a [Broker] dials. Without heartbeats nothing happens that
// a test has not asked for, and one that waits for nothing ends as a deadlock.
const URL = "amqp://guest:guest@memory/?heartbeat=0"

// Series is a RabbitMQ release series whose behaviour is imitated.
type Series struct{ Major, Minor int }

// The series that differ in what they count on quorum queues.
var (
	V310 = Series{3, 10}
	V40  = Series{4, 0}
	V43  = Series{4, 3}
)

func (s Series) atLeast(o Series) bool {
	return s.Major > o.Major || s.Major == o.Major && s.Minor >= o.Minor
}

// Broker is one node with one virtual host. It is safe for concurrent use.
type Broker struct {
	series Series

	mu        sync.Mutex
	changed   *sync.Cond // on mu: blocked or a connection has changed
	conns     map[*conn]struct{}
	queues    map[string]*queue
	exchanges map[string]*exchange
	named     int    // queues that the broker has named
	blocked   string // why publishing is blocked; "" when it is not
	serving   sync.WaitGroup
}

// New returns a broker of a series; [Broker.Close] ends it.
func New(s Series) *Broker {
	b := &Broker{series: s, conns: map[*conn]struct{}{}, queues: map[string]*queue{}, exchanges: map[string]*exchange{
		"": {kind: "direct"}, "amq.direct": {kind: "direct"}, "amq.fanout": {kind: "fanout"}, "amq.topic": {kind: "topic"},
	}}
	b.changed = sync.NewCond(&b.mu)
	return b
}

// Dial opens a connection to the broker.
func (b *Broker) Dial(config amqp.Config) (*amqp.Connection, error) {
	config.Dial = b.Connect
	return amqp.DialConfig(URL, config)
}

// Connect is the network to the broker, for amqp.Config.Dial, at whatever address.
func (b *Broker) Connect(string, string) (net.Conn, error) {
	client, server := pipe()
	c := &conn{b: b, wire: server, channels: map[uint16]*channel{}}
	b.mu.Lock()
	b.conns[c] = struct{}{}
	b.mu.Unlock()
	b.serving.Go(c.serve)
	return client, nil
}

// Cut ends every connection without a word, as a network does.
func (b *Broker) Cut() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for c := range b.conns {
		_ = c.wire.Close()
		c.lost()
	}
}

// Close ends every connection and waits until the broker does nothing any more.
func (b *Broker) Close() {
	b.Unblock()
	b.Cut()
	b.serving.Wait()
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, q := range b.queues {
		q.expire.Stop()
	}
}

// Block raises an alarm: connections that publish are told so, and not read.
func (b *Broker) Block(reason string) { b.setBlocked(reason) }

// Unblock ends the alarm.
func (b *Broker) Unblock() { b.setBlocked("") }

func (b *Broker) setBlocked(reason string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.blocked = reason
	b.changed.Broadcast()
}

// deadLetter sends m on from q, or drops it.
func (b *Broker) deadLetter(q *queue, m *message, reason string) {
	if q.deadExchange == nil {
		return
	}
	dead := *m
	dead.died(q.name, reason, time.Now())
	dead.exchange, dead.expires = *q.deadExchange, time.Time{}
	dead.expiration, dead.flags = "", dead.flags&^hasExpiration
	dead.redelivered, dead.count, dead.acquired = false, 0, 0
	if q.deadKey != "" {
		dead.key = q.deadKey
	}
	for _, to := range b.route(dead.exchange, dead.key) {
		to.push(dead)
	}
}
