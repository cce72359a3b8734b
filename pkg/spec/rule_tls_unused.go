package spec

import "strings"

func checkTLSUnused(s *Spec, report report) {
	if s.Broker.TLS != nil && strings.HasPrefix(s.Broker.URL.Value, "amqp://") {
		report(s.tlsPos, "broker.tls is not used, because the URL is amqp:// without TLS", "write an amqps:// URL, or remove tls")
	}
}
