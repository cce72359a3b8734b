// Package rabbit starts private RabbitMQ nodes for tests and demos and leaves
// nothing behind when they stop.
//
// A node has a temporary folder, free ports, a cookie and an epmd of its own,
// so any number of nodes of any number of processes run side by side. A small
// guard process removes everything when the process that started the node
// ends, however it ends.
//
// Nodes come from the rabbitmq-server package of this machine, from a folder
// made by debootstrap (other series, needs root), or from a container engine.
// See [Start] for the order.
package rabbit

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
)

// withDefaults fills what was left out and refuses a series nobody knows.
func (o Options) withDefaults() (Options, error) {
	o.Series = cmp.Or(o.Series, os.Getenv("RSCTL_E2E_SERIES"), Installed)
	if o.Series != Installed && !slices.Contains(Series(), o.Series) {
		return o, fmt.Errorf("unknown RabbitMQ series %q: use %q or one of %q", o.Series, Installed, Series())
	}
	return o, nil
}

// Start starts one node and returns when it takes connections.
//
// A series is taken from the machine's own rabbitmq-server package when that
// has it, else from a debootstrap folder (built on first use, as root), else
// from a container image. The error says what is missing and how to get it.
func Start(ctx context.Context, o Options) (*Node, error) {
	c, err := StartCluster(ctx, 1, o)
	if err != nil {
		return nil, err
	}
	return c.Nodes[0], nil
}

// StartCluster starts n nodes and joins the second and later ones to the first.
func StartCluster(ctx context.Context, n int, o Options) (*Cluster, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	p, err := find(ctx, o)
	if err != nil {
		return nil, err
	}
	c, err := p.prepare(ctx, n, o)
	if err != nil {
		return nil, fmt.Errorf("RabbitMQ %s: %w", o.Series, err)
	}
	if err := c.start(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("RabbitMQ %s: %w", o.Series, err), c.Stop())
	}
	return c, nil
}

// start brings the nodes up side by side and joins them one after the other.
func (c *Cluster) start(ctx context.Context) error {
	errs := make([]error, len(c.Nodes))
	var wg sync.WaitGroup
	for i, n := range c.Nodes {
		wg.Go(func() { errs[i] = n.start(ctx) })
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		return err
	}
	for _, n := range c.Nodes[1:] {
		if err := n.join(ctx, c.Nodes[0]); err != nil {
			return err
		}
	}
	return nil
}
