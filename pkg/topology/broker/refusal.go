package broker

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rsctl/rsctl/pkg/regular"
	"github.com/rsctl/rsctl/pkg/spec"
)

// A Refusal is an answer of the server that will not change by trying again: a
// missing vhost, a wrong password, a missing permission, a certificate that
// does not verify.
type Refusal struct {
	Code    int // AMQP reply code, 0 when there is none
	Message string
	Hint    string
	Login   bool // it is about the user, the password or the client certificate
}

func (r *Refusal) Error() string { return r.Message }

// Permanent says to package runtime that trying again is useless.
func (*Refusal) Permanent() bool { return true }

// explainDial turns a failed connect into one line. What may pass by itself (a
// refused TCP connection, a timeout, a connection limit) is no Refusal.
func explainDial(ctx context.Context, uri amqp.URI, err error, socket *watchedConn) error {
	at := "connect to " + address(uri)
	var answer *amqp.Error
	switch {
	case errors.Is(ctx.Err(), context.Canceled):
		return ctx.Err()
	case errors.Is(ctx.Err(), context.DeadlineExceeded), errors.Is(err, context.DeadlineExceeded),
		errors.Is(err, os.ErrDeadlineExceeded), socket.timedOut.Load():
		return fmt.Errorf("%s: %w", at, errNoAnswer)
	case errors.Is(err, amqp.ErrSASL):
		return &Refusal{Code: codeAccessRefused, Message: at + ": the server offers no login mechanism that is asked for",
			Hint: "see broker.auth, and auth_mechanism in the URL; external needs the plugin rabbitmq_auth_mechanism_ssl"}
	case errors.Is(err, amqp.ErrCredentials) && socket.silent.Load():
		return refuseLogin(uri)
	case errors.As(err, &answer) && answer.Server:
		return refusedOpen(at, uri, answer)
	case errors.As(err, &answer):
		return fmt.Errorf("%s: the server closed the connection during the handshake", at)
	}
	if r := refusedTLS(at, err); r != nil {
		return r
	}
	return fmt.Errorf("%s: %w", at, err)
}

// refusedOpen explains what the server says to a login it knows or to a vhost.
// A reached connection limit is a 530, too, but passes.
func refusedOpen(at string, uri amqp.URI, answer *amqp.Error) error {
	switch {
	case answer.Code == codeAccessRefused:
		return refuseLogin(uri)
	case limitText.MatchString(answer.Reason):
	case answer.Code == codeNotAllowed && strings.Contains(answer.Reason, "not found"):
		return &Refusal{Code: codeNotAllowed, Message: fmt.Sprintf("%s: vhost %q does not exist", at, uri.Vhost),
			Hint: "create it (rabbitmqctl add_vhost), or correct the path of broker.url; /%2F is the vhost \"/\""}
	case answer.Code == codeNotAllowed && strings.Contains(answer.Reason, "refused for user"):
		return &Refusal{Code: codeNotAllowed, Message: fmt.Sprintf("%s: user %q has no permissions in vhost %q", at, uri.Username, uri.Vhost),
			Hint: "grant them (rabbitmqctl set_permissions)"}
	}
	return fmt.Errorf("%s: %s", at, words(answer))
}

var limitText = regexp.MustCompile(`limit \(\d+\) is reached`)

func refusedTLS(at string, err error) error {
	var verify *tls.CertificateVerificationError
	var header tls.RecordHeaderError
	var hostname x509.HostnameError
	var authority x509.UnknownAuthorityError
	var alert tls.AlertError
	switch {
	case errors.As(err, &verify), errors.As(err, &hostname), errors.As(err, &authority):
		return &Refusal{Message: fmt.Sprintf("%s: the server's certificate does not verify: %v", at, err),
			Hint: "set broker.tls.ca_file, or server_name when the certificate is for another name"}
	case errors.As(err, &header):
		return &Refusal{Message: at + ": the server does not speak TLS on this port",
			Hint: "use the TLS port (5671 by default), or amqp:// for a plain connection"}
	case errors.As(err, &alert):
		return &Refusal{Message: fmt.Sprintf("%s: the server refused the TLS handshake: %v", at, err),
			Hint: "check broker.tls.cert_file and key_file"}
	}
	return nil
}

// words is the server's reason without its code name: "PRECONDITION_FAILED - x".
func words(answer *amqp.Error) string {
	if _, rest, ok := strings.Cut(answer.Reason, " - "); ok {
		return rest
	}
	return answer.Reason
}

// maxPEM bounds a file of certificates.
const maxPEM = 8 << 20

// clientTLS reads the files of t. A file that cannot be used is a Refusal: the
// spec names it.
func clientTLS(t *spec.TLS) (*tls.Config, error) {
	cfg := &tls.Config{ServerName: t.ServerName, MinVersion: tls.VersionTLS12}
	if t.CAFile != "" {
		pem, err := regular.Read(t.CAFile, maxPEM)
		if err != nil {
			return nil, &Refusal{Message: fmt.Sprintf("broker.tls.ca_file: %v", err)}
		}
		cfg.RootCAs = x509.NewCertPool()
		if !cfg.RootCAs.AppendCertsFromPEM(pem) {
			return nil, &Refusal{Message: fmt.Sprintf("broker.tls.ca_file: no certificate in %s", t.CAFile), Hint: "the file must be in PEM format"}
		}
	}
	if t.CertFile != "" || t.KeyFile != "" {
		pair, err := tls.LoadX509KeyPair(t.CertFile, t.KeyFile)
		if err != nil {
			return nil, &Refusal{Message: fmt.Sprintf("broker.tls.cert_file, key_file: %v", err)}
		}
		cfg.Certificates = []tls.Certificate{pair}
	}
	return cfg, nil
}
