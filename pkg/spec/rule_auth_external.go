package spec

import (
	"net/url"
	"slices"
	"strings"
)

// RabbitMQ takes the user's name from the certificate that the client shows
// during the TLS handshake.
func checkAuthExternal(s *Spec, report report) {
	b := s.Broker
	if b.Auth != External || b.URL.Value == "" {
		return
	}
	switch {
	case slices.ContainsFunc(b.Addresses(), func(u Text) bool { return strings.HasPrefix(u.Value, "amqp://") }):
		report(s.authPos, "broker.auth: external needs TLS, and a URL is amqp://", "write amqps:// URLs")
	case (b.TLS == nil || b.TLS.CertFile == "") && !slices.ContainsFunc(b.Addresses(), namesCertificate):
		report(s.authPos, "broker.auth: external needs a client certificate", "set cert_file and key_file under broker.tls")
	}
}

// namesCertificate reports whether a URL has the certificate in its query.
func namesCertificate(u Text) bool {
	parsed, err := url.Parse(u.Value)
	return err == nil && parsed.Query().Get("certfile") != ""
}
