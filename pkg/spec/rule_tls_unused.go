package spec

import (
	"slices"
	"strings"
)

func checkTLSUnused(s *Spec, report report) {
	if s.Broker.TLS != nil && !slices.ContainsFunc(s.Broker.Addresses(), notPlain) {
		report(s.tlsPos, "broker.tls is not used, because the URL is amqp:// without TLS", "write an amqps:// URL, or remove tls")
	}
}

func notPlain(u Text) bool { return !strings.HasPrefix(u.Value, "amqp://") }
