package broker

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"sync/atomic"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rsctl/rsctl/pkg/frames"
	"github.com/rsctl/rsctl/pkg/spec"
)

// connectTimeout bounds the TCP connect and the handshake, unless the URL says
// otherwise (connection_timeout, in milliseconds).
const connectTimeout = 10 * time.Second

// Dial opens one AMQP connection as b says; name is shown in the management UI
// behind the spec's connection_name. The error is one line for people, never
// holds a password, and unwraps to a [*Refusal] when trying again is useless.
//
// The URL's query may set heartbeat (seconds), connection_timeout
// (milliseconds), channel_max, auth_mechanism, and the certificate files of
// RabbitMQ's URI format, which b.TLS overrides. The client library's own
// reconnecting stays off: it has no guard against settling an old delivery on a
// new channel.
func Dial(ctx context.Context, b spec.Broker, name string) (*amqp.Connection, error) {
	uri, err := parseURL(b.URL.Value)
	if err != nil {
		return nil, err
	}
	return dialURI(ctx, b, uri, name)
}

// parseURL never returns the parser's own error: it repeats the URL, and with a
// password that holds a reserved character even a "host" may be part of it.
func parseURL(raw string) (amqp.URI, error) {
	uri, err := amqp.ParseURI(raw)
	if err == nil {
		_, rest, _ := strings.Cut(raw, "://")
		_, path, _ := strings.Cut(rest, "/")
		if !strings.Contains(path, "@") {
			return uri, nil
		}
	}
	return amqp.URI{}, &Refusal{
		Message: "broker.url is not a valid AMQP URL",
		Hint:    "write amqp://user:password@host:5672/vhost; percent-encode reserved characters such as / ? # @ in user, password and vhost",
	}
}

func dialURI(ctx context.Context, b spec.Broker, uri amqp.URI, name string) (*amqp.Connection, error) {
	timeout := connectTimeout
	if uri.ConnectionTimeout > 0 {
		timeout = time.Duration(uri.ConnectionTimeout) * time.Millisecond
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	cfg := amqp.Config{Properties: amqp.NewConnectionProperties()}
	cfg.Properties.SetClientConnectionName(connectionName(b.ConnectionName, name))
	secure, err := tlsFor(b, uri)
	if err != nil {
		return nil, err
	}
	var socket watchedConn
	var gathered *gatherConn
	var screen *frames.Conn
	stop := func() bool { return true }
	cfg.Dial = func(network, _ string) (net.Conn, error) {
		conn, err := (&net.Dialer{}).DialContext(ctx, network, address(uri))
		if err != nil {
			return nil, err
		}
		stop = context.AfterFunc(ctx, func() { _ = conn.Close() })
		gathered = newGatherConn(conn)
		socket.Conn, socket.since = gathered, time.Now()
		if err := conn.SetDeadline(time.Now().Add(timeout)); err != nil { // cleared after the handshake
			return nil, err
		}
		plain, err := encrypt(ctx, &socket, secure)
		if err != nil {
			return nil, err
		}
		screen = frames.Screen(plain)
		return screen, nil
	}
	conn, err := amqp.DialConfig(withoutTLS(b.URL.Value), cfg)
	if !stop() && err == nil {
		_ = conn.Close()
		err = ctx.Err()
	}
	if err != nil {
		return nil, explainDial(ctx, uri, err, &socket)
	}
	screen.Limit(conn.Config.FrameSize)
	gathered.gather()
	return conn, nil
}

func connectionName(prefix, name string) string {
	if prefix == "" || name == "" {
		return prefix + name
	}
	return prefix + "/" + name
}

// refuseLogin is the answer to a wrong user or password.
func refuseLogin(uri amqp.URI) error {
	return &Refusal{
		Code:    codeAccessRefused,
		Message: fmt.Sprintf("%s: login refused for user %q", address(uri), uri.Username),
		Hint:    "check user name and password; the user guest may only log in from localhost",
	}
}

// address is the part of the URL that is always safe to show.
func address(uri amqp.URI) string {
	return net.JoinHostPort(uri.Host, fmt.Sprint(uri.Port))
}

// silentRefusal tells a wrong password from a server that goes away during the
// login: RabbitMQ says nothing to the first, it closes the socket after 3 s
// (measured on 3.10, 4.0 and 4.3). A server that goes away does so at once.
const silentRefusal = 2 * time.Second

// watchedConn remembers how reading ended: the client library calls every end
// during the login a wrong password.
type watchedConn struct {
	net.Conn
	since    time.Time
	timedOut atomic.Bool
	silent   atomic.Bool
}

func (c *watchedConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	switch {
	case err == nil:
	case errors.Is(err, os.ErrDeadlineExceeded):
		c.timedOut.Store(true)
	case time.Since(c.since) >= silentRefusal:
		c.silent.Store(true)
	}
	return n, err
}
