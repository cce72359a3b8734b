package topology_test

import (
	"fmt"

	"github.com/rsctl/rsctl/pkg/spec"
	"github.com/rsctl/rsctl/pkg/topology"
)

// A spec compiles to everything that must exist for it, without a broker.
func ExampleCompile() {
	s, problems := spec.Parse([]byte(`
version: 1
declare_topology: true
queues:
  - name: orders
    type: quorum
    max_attempts: 5
    dead_letter: orders.dead
`), spec.Options{})
	if problems = append(problems, topology.Problems(s)...); problems.HasErrors() {
		fmt.Print(problems)
		return
	}
	t := topology.Compile(s, topology.Server{Version: "4.3.6"})
	for _, q := range t.Queues {
		fmt.Printf("%s %q, %v\n", q.Origin.Role, q.Name, q.Arguments)
	}
	// Output:
	// dead-letter queue "orders.dead", map[x-delivery-limit:-1 x-queue-type:quorum]
	// queue "orders", map[x-dead-letter-exchange: x-dead-letter-routing-key:orders.dead x-delivery-limit:4 x-queue-type:quorum]
}
