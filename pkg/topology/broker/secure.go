package broker

import (
	"context"
	"crypto/tls"
	"net"
	"strings"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rsctl/rsctl/pkg/spec"
)

// tlsFor is how to encrypt; nil is not at all. The client library would do it
// above our own connection, which has to read the frames.
func tlsFor(b spec.Broker, uri amqp.URI) (*tls.Config, error) {
	if uri.Scheme != "amqps" {
		return nil, nil
	}
	files := b.TLS
	if files == nil {
		files = &spec.TLS{CAFile: uri.CACertFile, CertFile: uri.CertFile, KeyFile: uri.KeyFile, ServerName: uri.ServerName}
	}
	cfg, err := clientTLS(files)
	if err == nil && cfg.ServerName == "" {
		cfg.ServerName = uri.Host
	}
	return cfg, err
}

// encrypt returns conn with TLS on it, unless cfg is nil. It closes conn when
// that fails.
func encrypt(ctx context.Context, conn net.Conn, cfg *tls.Config) (net.Conn, error) {
	if cfg == nil {
		return conn, nil
	}
	client := tls.Client(conn, cfg)
	if err := client.HandshakeContext(ctx); err != nil {
		_ = conn.Close()
		return nil, err
	}
	return client, nil
}

// withoutTLS is the same URL for a client that is not to encrypt once more.
func withoutTLS(url string) string {
	if rest, ok := strings.CutPrefix(url, "amqps:"); ok {
		return "amqp:" + rest
	}
	return url
}
