// Package proxy stands between rsctl and a broker and breaks the network.
package proxy

import (
	"errors"
	"net"
	"net/url"
	"sync"
	"time"
)

// A Proxy passes connections on to the first of its brokers that takes them.
type Proxy struct {
	// URL is the broker as seen through the proxy.
	URL string

	listener  net.Listener
	upstreams []string

	mu       sync.Mutex
	conns    map[net.Conn]bool
	frozen   chan struct{} // closed while traffic flows
	confirms bool          // confirms are passed on
	running  sync.WaitGroup
}

// New starts a proxy in front of brokers, given by URLs that differ in host and
// port only.
func New(brokers ...string) (*Proxy, error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &Proxy{listener: ln, conns: map[net.Conn]bool{}, frozen: make(chan struct{}), confirms: true}
	close(p.frozen)
	for _, b := range brokers {
		u, err := url.Parse(b)
		if err != nil {
			return nil, errors.Join(err, ln.Close())
		}
		p.upstreams = append(p.upstreams, u.Host)
		u.Host = ln.Addr().String()
		p.URL = u.String()
	}
	p.running.Go(p.accept)
	return p, nil
}

func (p *Proxy) accept() {
	for {
		in, err := p.listener.Accept()
		if err != nil {
			return
		}
		p.running.Go(func() { p.join(in) })
	}
}

// join passes bytes both ways until one side ends.
func (p *Proxy) join(in net.Conn) {
	defer in.Close()
	out, err := p.dial()
	if err != nil {
		return
	}
	defer out.Close()
	p.add(in, out)
	defer p.remove(in, out)
	var ways sync.WaitGroup
	ways.Go(func() { p.pass(out, in, everything) })
	ways.Go(func() { p.pass(in, out, p.withoutConfirms()) })
	ways.Wait()
}

func (p *Proxy) dial() (net.Conn, error) {
	var all error
	for _, host := range p.upstreams {
		conn, err := net.DialTimeout("tcp", host, time.Second)
		if err == nil {
			return conn, nil
		}
		all = errors.Join(all, err)
	}
	return nil, all
}

func (p *Proxy) add(conns ...net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range conns {
		p.conns[c] = true
	}
}

func (p *Proxy) remove(conns ...net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range conns {
		delete(p.conns, c)
	}
}

// pass copies what filter lets through; a frozen proxy keeps it.
func (p *Proxy) pass(to, from net.Conn, filter func([]byte) []byte) {
	defer to.Close()
	defer from.Close()
	buf := make([]byte, 64<<10)
	for {
		n, err := from.Read(buf)
		if err != nil {
			return
		}
		p.mu.Lock()
		frozen := p.frozen
		p.mu.Unlock()
		<-frozen
		if _, err := to.Write(filter(buf[:n])); err != nil {
			return
		}
	}
}

// Cut resets every connection that is open now; new ones pass.
func (p *Proxy) Cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.conns {
		if tcp, ok := c.(*net.TCPConn); ok {
			_ = tcp.SetLinger(0) // RST, not FIN: nobody says goodbye
		}
		_ = c.Close()
	}
}

// Freeze makes the proxy a black hole: connections stay open, or are accepted,
// and nothing passes until Thaw.
func (p *Proxy) Freeze() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.frozen = make(chan struct{})
}

// Thaw ends Freeze, for new connections only: those of before are cut.
func (p *Proxy) Thaw() {
	p.Cut()
	p.mu.Lock()
	defer p.mu.Unlock()
	close(p.frozen)
}

// DropConfirms swallows publisher confirms, positive and negative, of every
// connection until PassConfirms.
func (p *Proxy) DropConfirms() { p.setConfirms(false) }

// PassConfirms ends DropConfirms.
func (p *Proxy) PassConfirms() { p.setConfirms(true) }

func (p *Proxy) setConfirms(on bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.confirms = on
}

// Close cuts everything and stops listening.
func (p *Proxy) Close() {
	_ = p.listener.Close() // what it says changes nothing
	p.mu.Lock()
	select {
	case <-p.frozen:
	default:
		close(p.frozen)
	}
	p.mu.Unlock()
	p.Cut()
	p.running.Wait()
}
