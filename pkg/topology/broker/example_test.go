package broker_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"os"

	"github.com/rsctl/rsctl/pkg/spec"
	"github.com/rsctl/rsctl/pkg/topology"
	"github.com/rsctl/rsctl/pkg/topology/broker"
)

// Apply declares what is not there and changes nothing that is.
func ExampleApply() {
	name := "orders-" + rand.Text()
	s, problems := spec.Parse([]byte(`
version: 1
broker: {url: "${RSCTL_AMQP_URL}"}
declare_topology: true
queues:
  - {name: "${NAME}", type: quorum, max_attempts: 5, dead_letter: "${NAME}.dead"}
`), spec.Options{File: "queues.yaml", LookupEnv: func(key string) (string, bool) {
		if key == "NAME" {
			return name, true
		}
		return os.LookupEnv(key)
	}})
	if problems.HasErrors() {
		fmt.Print(problems)
		return
	}
	ctx := context.Background()
	session, err := broker.Open(ctx, s.Broker, "apply")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer session.Close()
	defer remove(session, name, name+".dead")
	t := topology.Compile(s, session.Server())
	for range 2 {
		report, err := broker.Apply(ctx, session, t, nil)
		if err != nil { // the connection or ctx has ended
			fmt.Println(err)
			return
		}
		for _, f := range report.Findings {
			fmt.Printf("%s: %s\n", f.Origin.Role, f.State)
		}
	}
	// Output:
	// dead-letter queue: created
	// queue: created
	// dead-letter queue: ok
	// queue: ok
}

func remove(s *broker.Session, queues ...string) {
	ch, err := s.Conn().Channel()
	if err != nil {
		panic(err)
	}
	for _, q := range queues {
		if _, err := ch.QueueDelete(q, false, false, false); err != nil {
			panic(err)
		}
	}
}
