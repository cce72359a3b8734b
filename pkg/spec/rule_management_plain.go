package spec

import (
	"net/netip"
	"net/url"
	"slices"
	"strings"
)

// The management API is asked with the user and the password of the broker,
// unless management_url has its own.
func checkManagementPlain(s *Spec, report report) {
	if s.Broker.ManagementInPlain() {
		report(s.managementPos, ManagementInPlain, ManagementInPlainHint)
	}
}

// What is wrong with a broker of which [Broker.ManagementInPlain] is true, and
// what to do.
const (
	ManagementInPlain     = "broker.management_url is http:// beside an amqps:// URL: the password crosses the network in plain text"
	ManagementInPlainHint = "write an https:// URL"
)

// ManagementInPlain reports whether the management API is reached without TLS
// although the broker is reached with it. An address on this host crosses no
// network.
func (b Broker) ManagementInPlain() bool {
	if !slices.ContainsFunc(b.Addresses(), func(u Text) bool { return strings.HasPrefix(u.Value, "amqps://") }) {
		return false
	}
	management, err := url.Parse(b.ManagementURL.Value)
	return err == nil && management.Scheme == "http" && !loopback(management.Hostname())
}

func loopback(host string) bool {
	addr, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && addr.Unmap().IsLoopback()
}
