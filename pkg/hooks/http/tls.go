package http

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"time"

	"github.com/rsctl/rsctl/pkg/spec"
)

// tlsConfig loads the endpoint's CA and client certificate. The certificate is
// read again for every new connection, so that it may be renewed while rsctl
// runs.
func tlsConfig(t *spec.TLS) (*tls.Config, error) {
	conf := &tls.Config{MinVersion: tls.VersionTLS12}
	if t == nil {
		return conf, nil
	}
	conf.ServerName = t.ServerName
	if t.CAFile != "" {
		pem, err := os.ReadFile(t.CAFile)
		if err != nil {
			return nil, fmt.Errorf("handler tls ca_file: %w", err)
		}
		conf.RootCAs = x509.NewCertPool()
		if !conf.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("handler tls ca_file %s holds no PEM certificate", t.CAFile)
		}
	}
	if t.CertFile == "" && t.KeyFile == "" {
		return conf, nil
	}
	if _, err := clientCertificate(t); err != nil {
		return nil, err
	}
	conf.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return clientCertificate(t) }
	return conf, nil
}

// clientError is why there is no client certificate to show.
type clientError struct{ err error }

func (e *clientError) Error() string { return "handler tls cert_file and key_file: " + e.err.Error() }
func (e *clientError) Unwrap() error { return e.err }

func clientCertificate(t *spec.TLS) (*tls.Certificate, error) {
	cert, err := tls.LoadX509KeyPair(t.CertFile, t.KeyFile)
	if err != nil {
		return nil, &clientError{err}
	}
	if end := cert.Leaf.NotAfter; time.Now().After(end) {
		return nil, &clientError{fmt.Errorf("the certificate %s expired on %s; renew it", t.CertFile, end.UTC().Format(time.DateOnly))}
	}
	return &cert, nil
}

// describeTLS says what keeps a connection from being secured, and what to do.
// It returns "" for every other error. A server that refuses our certificate
// says so when the handshake is over for us, but before it reads a request.
func describeTLS(err error, conf *spec.TLS) string {
	var client *clientError
	var untrusted x509.UnknownAuthorityError
	var verify *tls.CertificateVerificationError
	var plain tls.RecordHeaderError
	var op *net.OpError
	switch {
	case errors.As(err, &client):
		return client.Error()
	case errors.As(err, &untrusted):
		return untrusted.Error() + "; tls.ca_file of the handler names the authorities to trust"
	case errors.As(err, &verify):
		return "the endpoint's certificate cannot be used: " + verify.Err.Error()
	case errors.As(err, &plain):
		return "the endpoint does not speak TLS: use http:// or another port"
	case errors.As(err, &op) && op.Op == "remote error":
		return "the endpoint refuses the connection: " + op.Err.Error() + clientHint(conf)
	}
	return ""
}

func clientHint(conf *spec.TLS) string {
	if conf == nil || conf.CertFile == "" {
		return "; if it asks for a client certificate, name one in tls.cert_file and tls.key_file of the handler"
	}
	return "; is " + conf.CertFile + " the client certificate that it expects?"
}
