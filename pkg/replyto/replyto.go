// Package replyto decides where a reply may go. The address of a reply comes
// from the message, so whoever may publish chooses it, and the reply is sent with
// the rights of rsctl: without a limit a stranger could fill any queue.
package replyto

import (
	"errors"
	"strings"
)

// Why an address gets no reply.
var (
	ErrForm       = errors.New("RabbitMQ makes no direct reply-to address of this form")
	ErrNotAllowed = errors.New("replies go to direct reply-to, to amq.gen-* and to what reply.to of the handler names")
)

// directPrefix starts the addresses that RabbitMQ makes for direct reply-to,
// generatedPrefix the names that it gives to queues declared without one.
const (
	directPrefix    = "amq.rabbitmq.reply-to"
	generatedPrefix = "amq.gen-"
)

// Check returns nil when a reply may be sent to address. Direct reply-to and
// queues that the server has named are always allowed, other queues by a pattern.
// No pattern makes an address good that looks like direct reply-to and is none.
func Check(address string, patterns []string) error {
	switch {
	case Direct(address):
		if !madeByServer(address) {
			return ErrForm
		}
		return nil
	case strings.HasPrefix(address, generatedPrefix):
		return nil
	}
	for _, p := range patterns {
		if Match(p, address) {
			return nil
		}
	}
	return ErrNotAllowed
}

// Direct reports whether an address names direct reply-to, well formed or not.
func Direct(address string) bool { return strings.HasPrefix(address, directPrefix) }

// Match reports whether a name fits a pattern, in which * stands for any
// characters, none and dots included, and everything else for itself.
func Match(pattern, name string) bool {
	first, rest, open := strings.Cut(pattern, "*")
	if !open {
		return pattern == name
	}
	if !strings.HasPrefix(name, first) {
		return false
	}
	name = name[len(first):]
	parts := strings.Split(rest, "*")
	last := parts[len(parts)-1]
	for _, part := range parts[:len(parts)-1] {
		i := strings.Index(name, part)
		if i < 0 {
			return false
		}
		name = name[i+len(part):]
	}
	return strings.HasSuffix(name, last)
}
