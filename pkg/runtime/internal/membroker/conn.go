package membroker

import (
	"fmt"
	"io"
	"maps"
	"slices"
)

// Methods of connections and channels.
var (
	connStart     = method{10, 10}
	connTune      = method{10, 30}
	connOpenOk    = method{10, 41}
	connClose     = method{10, 50}
	connCloseOk   = method{10, 51}
	connBlocked   = method{10, 60}
	connUnblocked = method{10, 61}
	chanOpen      = method{20, 10}
	chanOpenOk    = method{20, 11}
	chanClose     = method{20, 40}
	chanCloseOk   = method{20, 41}
)

const mostChannels = 2047

// conn is one connection. All but its reading is guarded by the broker's lock.
type conn struct {
	b        *Broker
	wire     *end
	channels map[uint16]*channel
	gone     bool
}

// serve answers a client until its connection ends.
func (c *conn) serve() {
	defer func() {
		_ = c.wire.Close()
		c.b.mu.Lock()
		defer c.b.mu.Unlock()
		c.lost()
	}()
	if c.greet() != nil {
		return
	}
	for {
		f, err := readFrame(c.wire)
		if err != nil || !c.take(f) {
			return
		}
	}
}

// greet opens the connection: everybody may come in.
func (c *conn) greet() error {
	var header [8]byte
	if _, err := io.ReadFull(c.wire, header[:]); err != nil {
		return err
	}
	able := table{}
	for _, name := range []string{"publisher_confirms", "basic.nack", "consumer_cancel_notify", "connection.blocked"} {
		able = append(able, field{name, trueValue()})
	}
	properties := table{
		{"product", textValue("RabbitMQ")},
		{"version", textValue(fmt.Sprintf("%d.%d.0", c.b.series.Major, c.b.series.Minor))},
		{"capabilities", tableValue(able)},
	}
	c.write(0, call(connStart).octet(0).octet(9).longText(string(properties.encode())).longText("PLAIN").longText("en_US"))
	if _, err := readFrame(c.wire); err != nil { // start-ok
		return err
	}
	c.write(0, call(connTune).short(mostChannels).long(frameMax).short(0))
	for range 2 { // tune-ok and open
		if _, err := readFrame(c.wire); err != nil {
			return err
		}
	}
	c.write(0, call(connOpenOk).text(""))
	return nil
}

func (c *conn) write(channel uint16, a arguments) {
	_, _ = c.wire.Write(appendFrame(nil, frame{methodFrame, channel, a})) // a reader learns of the end
}

// take handles one frame; false ends the connection.
func (c *conn) take(f frame) bool {
	c.b.mu.Lock()
	defer c.b.mu.Unlock()
	if c.gone {
		return false
	}
	if f.channel != 0 {
		return c.onChannel(f)
	}
	if f.kind != methodFrame {
		return true // a heartbeat
	}
	switch r := (&reader{f.payload}); (method{r.short(), r.short()}) {
	case connClose:
		c.lost() // before the answer: what the client asks next finds everything back
		c.write(0, call(connCloseOk))
	case connCloseOk:
		return false
	}
	return true
}

func (c *conn) onChannel(f frame) bool {
	ch := c.channels[f.channel]
	if f.kind != methodFrame {
		if ch != nil {
			ch.content(f)
		}
		return !c.gone
	}
	r := &reader{f.payload}
	m := method{r.short(), r.short()}
	switch {
	case m == chanOpen:
		ch = &channel{c: c, id: f.channel, consumers: map[string]*consumer{}}
		c.channels[f.channel] = ch
		ch.send(call(chanOpenOk).long(0))
	case m == chanCloseOk:
		delete(c.channels, f.channel)
	case ch == nil:
	case m == chanClose:
		endAll(ch)
		delete(c.channels, f.channel)
		c.write(f.channel, call(chanCloseOk))
	case !ch.ended:
		ch.handle(m, r)
	}
	return true
}

// fail closes the connection for an error of its client.
func (c *conn) fail(code uint16, text string) {
	c.lost()
	c.write(0, call(connClose).short(code).text(text).short(0).short(0))
}

// lost puts everything back that the connection had.
func (c *conn) lost() {
	if c.gone {
		return
	}
	c.gone = true
	delete(c.b.conns, c)
	var all []*channel
	for _, id := range slices.Sorted(maps.Keys(c.channels)) {
		all = append(all, c.channels[id])
	}
	endAll(all...)
	for _, q := range c.b.queues {
		if q.owner == c {
			q.delete()
		}
	}
	c.b.changed.Broadcast()
}

// waitUnblocked keeps a connection that publishes as long as there is an alarm.
func (c *conn) waitUnblocked() {
	if c.b.blocked == "" {
		return
	}
	c.write(0, call(connBlocked).text(c.b.blocked))
	for c.b.blocked != "" && !c.gone {
		c.b.changed.Wait()
	}
	c.write(0, call(connUnblocked))
}
