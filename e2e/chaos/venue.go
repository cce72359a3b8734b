package main

import (
	"context"
	"errors"
	"net/url"

	"github.com/rsctl/rsctl/e2e/rabbit"
)

// A venue is a broker of one or more nodes.
type venue struct {
	URL, management string
	nodes           []*rabbit.Node // none when the broker is not ours
	more            []string       // URLs of further nodes
}

// startVenue starts nodes of our own. A queue that dead-letters at least once
// tries again after seconds instead of three minutes there, which a test cannot
// wait for.
func startVenue(ctx context.Context, size int, o rabbit.Options) (venue, func() error, error) {
	c, err := rabbit.StartCluster(ctx, size, o)
	if err != nil {
		return venue{}, nil, err
	}
	v := venue{URL: c.Nodes[0].URL, management: c.Nodes[0].ManagementURL, nodes: c.Nodes}
	for _, n := range c.Nodes[1:] {
		v.more = append(v.more, n.URL)
	}
	for i := range c.Nodes {
		if err := v.soon(ctx, i); err != nil {
			return venue{}, nil, errors.Join(err, c.Stop())
		}
	}
	return v, c.Stop, nil
}

func (v venue) soon(ctx context.Context, i int) error {
	_, err := v.nodes[i].Ctl(ctx, "eval", "application:set_env(rabbit, dead_letter_worker_publisher_confirm_timeout, 2000).")
	return err
}

// restart starts a node again that was stopped or killed.
func (v venue) restart(ctx context.Context, i int) error {
	if err := v.nodes[i].Restart(ctx); err != nil {
		return err
	}
	return v.soon(ctx, i)
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
