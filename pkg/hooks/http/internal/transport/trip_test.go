package transport

import (
	"io"
	"net"
	"net/http/httptrace"
	"testing"
)

// The transport may look at what it has read before it writes the request.
func TestTrip_WhatIsThereBeforeTheRequestIsNoAnswer(t *testing.T) {
	t.Parallel()
	client, server := net.Pipe()
	defer client.Close()
	defer server.Close()
	c := &keptConn{Conn: client}
	c.heard.Store(true) // the answer to the request before
	p := &trip{}
	p.gotConn(httptrace.GotConnInfo{Conn: c, Reused: true})
	p.gotFirstByte()
	if !p.refused.Load() || !c.spent.Load() {
		t.Errorf("refused %t, the connection given up %t, want both", p.refused.Load(), c.spent.Load())
	}
	go io.Copy(io.Discard, server)
	c = &keptConn{Conn: client}
	c.heard.Store(true)
	p = &trip{}
	p.gotConn(httptrace.GotConnInfo{Conn: c, Reused: true})
	if _, err := c.Write([]byte("POST")); err != nil {
		t.Fatal(err)
	}
	p.gotFirstByte()
	if !p.refused.Load() {
		t.Error("what had come before the request is taken for its answer")
	}
}
