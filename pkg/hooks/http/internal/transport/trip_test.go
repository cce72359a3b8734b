package transport

import (
	"errors"
	"io"
	"net"
	"net/http/httptrace"
	"testing"
	"testing/synctest"
	"time"
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

// HTTP/2 goes on over another connection without GetConn when somebody else had it
// dialled. The end of the try before must not stand for that of the last one.
func TestTrip_ATryThatWasGivenUpSaysNothingOfTheNext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := &trip{wrote: make(chan struct{}, 1)}
		trace := p.trace()
		trace.GetConn("hook.test:443")
		trace.GotConn(httptrace.GotConnInfo{Reused: true})
		trace.WroteRequest(httptrace.WroteRequestInfo{Err: errors.New("the server goes away")})
		trace.GotConn(httptrace.GotConnInfo{})
		go func() {
			time.Sleep(time.Millisecond) // the answer has come before the transport says that all is sent
			trace.WroteRequest(httptrace.WroteRequestInfo{})
		}()
		if !p.Whole(t.Context()) {
			t.Error("an answer is not believed because of a try that was given up")
		}
	})
}
