package rabbit

import (
	"errors"
	"sync"
)

// A Cluster is a set of nodes that share a folder, a cookie and an epmd.
type Cluster struct {
	Nodes []*Node
	close func() error
	once  sync.Once
	err   error
}

// Stop ends every node at once and removes every trace. Later calls return the
// result of the first.
func (c *Cluster) Stop() error {
	c.once.Do(func() {
		errs := make([]error, len(c.Nodes))
		var wg sync.WaitGroup
		for i, n := range c.Nodes {
			wg.Go(func() { errs[i] = n.engine.discard() })
		}
		wg.Wait()
		c.err = errors.Join(append(errs, c.close())...)
	})
	return c.err
}
