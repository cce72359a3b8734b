package broker

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
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
// behind the spec's connection_name. What b has from files is read again. Of
// several addresses any will do. The error is one line for people, never
// holds a password, and unwraps to a [*Refusal] when trying again is useless.
//
// The URL's query may set heartbeat (seconds), connection_timeout
// (milliseconds), channel_max, auth_mechanism, and the certificate files of
// RabbitMQ's URI format, which b.TLS overrides. The client library's own
// reconnecting stays off: it has no guard against settling an old delivery on a
// new channel.
func Dial(ctx context.Context, b spec.Broker, name string) (*amqp.Connection, error) {
	b, err := b.Current()
	if err != nil {
		return nil, err
	}
	if all := b.Addresses(); len(all) > 1 {
		return dialAny(ctx, b, all, name)
	}
	return dialURL(ctx, b, b.URL.Value, name, connectTimeout)
}

// dialURL opens a connection to one address, which has to show within a time that
// somebody is there.
func dialURL(ctx context.Context, b spec.Broker, url, name string, answer time.Duration) (*amqp.Connection, error) {
	uri, err := parseURL(url)
	if err != nil {
		return nil, err
	}
	if b.Auth == spec.External {
		uri.AuthMechanism = []string{external}
	}
	return dialURI(ctx, b, url, uri, name, answer)
}

// external is how a URL asks for the login by client certificate.
const external = "external"

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

func dialURI(ctx context.Context, b spec.Broker, url string, uri amqp.URI, name string, answer time.Duration) (*amqp.Connection, error) {
	timeout := connectTimeout
	if uri.ConnectionTimeout > 0 {
		timeout = time.Duration(uri.ConnectionTimeout) * time.Millisecond
		answer = timeout
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	cfg := amqp.Config{Properties: amqp.NewConnectionProperties()}
	cfg.Properties.SetClientConnectionName(connectionName(b.ConnectionName, name))
	if b.Auth == spec.External {
		cfg.SASL = []amqp.Authentication{&amqp.ExternalAuth{}}
	}
	secure, err := tlsFor(b, uri)
	if err != nil {
		return nil, err
	}
	var socket watchedConn
	var gathered *gatherConn
	var screen *frames.Conn
	stop := func() bool { return true }
	cfg.Dial = func(network, _ string) (net.Conn, error) {
		conn, err := (&net.Dialer{Timeout: answer}).DialContext(ctx, network, address(uri))
		if err != nil {
			return nil, err
		}
		stop = context.AfterFunc(ctx, func() { _ = conn.Close() })
		gathered = newGatherConn(conn)
		socket.Conn, socket.since = gathered, time.Now()
		socket.deadline = socket.since.Add(timeout)                        // cleared after the handshake
		if err := conn.SetDeadline(socket.since.Add(answer)); err != nil { // until the first bytes
			return nil, err
		}
		plain, err := encrypt(ctx, &socket, secure)
		if err != nil {
			return nil, err
		}
		screen = frames.Screen(plain)
		return screen, nil
	}
	conn, err := amqp.DialConfig(withoutTLS(url), cfg)
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

// refuseLogin is the answer to a wrong user, password or certificate.
func refuseLogin(uri amqp.URI) error {
	if slices.Contains(uri.AuthMechanism, external) {
		return &Refusal{
			Code: codeAccessRefused, Login: true,
			Message: address(uri) + ": login with the client certificate refused",
			Hint:    "the name in the certificate must be a user of the broker; see the settings of rabbitmq_auth_mechanism_ssl",
		}
	}
	return &Refusal{
		Code:    codeAccessRefused,
		Login:   true,
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
	deadline time.Time // of the login, once the first bytes have come; zero after that
	timedOut atomic.Bool
	silent   atomic.Bool
}

func (c *watchedConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if n > 0 && !c.deadline.IsZero() { // this is the first Read, and nobody else writes deadlines before it
		_ = c.SetDeadline(c.deadline)
		c.deadline = time.Time{}
	}
	switch {
	case err == nil:
	case errors.Is(err, os.ErrDeadlineExceeded):
		c.timedOut.Store(true)
	case time.Since(c.since) >= silentRefusal:
		c.silent.Store(true)
	}
	return n, err
}
