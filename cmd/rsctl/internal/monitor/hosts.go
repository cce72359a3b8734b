package monitor

import (
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
)

// anyHost among the names of OnlyHosts takes every request.
const anyHost = "*"

// OnlyHosts hands on to h the requests whose Host is an address, localhost or one
// of the names, and those without one; /healthz, which tells nothing, to all. A web
// page that has its own name point to this machine could otherwise read what is
// said here in the browser of somebody who may.
func OnlyHosts(h http.Handler, names []string, log *slog.Logger) http.Handler {
	known := map[string]bool{"": true, "localhost": true}
	for _, name := range names {
		known[hostOf(name)] = true
	}
	if known[anyHost] {
		return h
	}
	var told sync.Once
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host := hostOf(r.Host)
		if known[host] || isAddress(host) || r.URL.Path == "/healthz" {
			h.ServeHTTP(w, r)
			return
		}
		told.Do(func() {
			log.Warn("a request to health and metrics was refused because of the name in its Host header; --listen-host allows it", "host", host)
		})
		text := fmt.Sprintf("This server does not answer for the host %q. Ask for its address, or start it with --listen-host %q.\n", host, host)
		answer(w, r, http.StatusMisdirectedRequest, text, map[string]string{"error": strings.TrimSpace(text)})
	})
}

// hostOf is a host as it is compared: without port and final dot, in lower case.
func hostOf(s string) string {
	if host, _, err := net.SplitHostPort(s); err == nil {
		s = host
	}
	return strings.ToLower(strings.TrimSuffix(s, "."))
}

func isAddress(host string) bool {
	_, err := netip.ParseAddr(strings.Trim(host, "[]"))
	return err == nil
}
