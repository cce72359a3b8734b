package spec

import (
	"fmt"
	"slices"
	"strings"
)

// Broker says how to reach RabbitMQ.
type Broker struct {
	URL            Text   // amqp:// or amqps://; the first of URLs, when there are any
	URLs           []Text // the addresses of broker.urls, of which any will do
	Auth           Auth
	ManagementURL  Text // http:// or https://; empty Value: no management API
	TLS            *TLS
	ConnectionName string

	written *writtenURLs // nil: nothing in them can change
}

// Auth is how rsctl shows the broker who it is.
type Auth string

// The ways to log in: with the user and the password of the URL, or with the
// client certificate of tls.
const (
	Password Auth = "password"
	External Auth = "external"
)

// writtenURLs holds the URLs with a ${file:…} as the spec has them, so that they
// can be filled in once more; "" where there is nothing to fill in.
type writtenURLs struct {
	options    Options
	addresses  []string
	management string
}

// Addresses returns the URLs of which each leads to the broker; there is at least
// one.
func (b Broker) Addresses() []Text {
	if len(b.URLs) > 0 {
		return b.URLs
	}
	return []Text{b.URL}
}

// String returns the addresses as they may be shown.
func (b Broker) String() string {
	var shown []string
	for _, u := range b.Addresses() {
		shown = append(shown, u.String())
	}
	return strings.Join(shown, ", ")
}

// SetURL puts one address in place of all.
func (b *Broker) SetURL(u Text) {
	b.URL, b.URLs = u, nil
	if w := b.written; w != nil {
		b.written = &writtenURLs{options: w.options, management: w.management}
	}
}

// SetManagementURL replaces the address of the management API.
func (b *Broker) SetManagementURL(u Text) {
	b.ManagementURL = u
	if w := b.written; w != nil {
		b.written = &writtenURLs{options: w.options, addresses: w.addresses}
	}
}

// Current returns b with what each ${file:…} of its URLs stands for now: a
// password may have been replaced since the spec was read. The error says what
// cannot be used, and never repeats what a file holds.
func (b Broker) Current() (Broker, error) {
	if b.written == nil {
		return b, nil
	}
	urls := slices.Clone(b.Addresses())
	for i, raw := range b.written.addresses {
		if err := b.written.fill(&urls[i], raw, amqpSchemes); err != nil {
			return Broker{}, fmt.Errorf("broker.url: %w", err)
		}
	}
	b.URL = urls[0]
	if len(b.URLs) > 0 {
		b.URLs = urls
	}
	if err := b.written.fill(&b.ManagementURL, b.written.management, httpSchemes); err != nil {
		return Broker{}, fmt.Errorf("broker.management_url: %w", err)
	}
	return b, nil
}

// fill gives u the value that raw stands for now.
func (w *writtenURLs) fill(u *Text, raw string, schemes []string) error {
	if raw == "" {
		return nil
	}
	value, _, err := w.options.expand(raw)
	if err == nil && value != "" {
		err = checkURL(value, schemes)
	}
	u.Value = value
	return err
}
