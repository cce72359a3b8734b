package main

import (
	"context"
	"net/url"

	"github.com/rsctl/rsctl/e2e/rabbit"
)

// A venue is a broker of one or more nodes.
type venue struct {
	URL, management string
	nodes           []*rabbit.Node // none when the broker is not ours
	more            []string       // URLs of further nodes
}

// soon makes a queue that dead-letters at least once try again after 2 s instead
// of three minutes, which a test cannot wait for.
const soon = "[{rabbit, [{dead_letter_worker_publisher_confirm_timeout, 2000}]}]"

// startVenue starts nodes of our own.
func startVenue(ctx context.Context, size int, o rabbit.Options) (venue, func() error, error) {
	o.Advanced = soon
	c, err := rabbit.StartCluster(ctx, size, o)
	if err != nil {
		return venue{}, nil, err
	}
	v := venue{URL: c.Nodes[0].URL, management: c.Nodes[0].ManagementURL, nodes: c.Nodes}
	for _, n := range c.Nodes[1:] {
		v.more = append(v.more, n.URL)
	}
	return v, c.Stop, nil
}

// inVHost returns the URLs of a virtual host on every node.
func (v venue) inVHost(name string) ([]string, error) {
	var all []string
	for _, text := range append([]string{v.URL}, v.more...) {
		u, err := url.Parse(text)
		if err != nil {
			return nil, err
		}
		u.Path = "/" + name
		all = append(all, u.String())
	}
	return all, nil
}
