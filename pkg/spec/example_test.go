package spec_test

import (
	"fmt"

	"github.com/rsctl/rsctl/pkg/spec"
)

// All problems of a file come back at once, each with its place and what to do.
func ExampleParse() {
	const file = `
version: 1
queues:
  - name: orders
    type: quorum
    max_attempt: 5
    dead_letter: orders.dead
    handler: {exec: ["./reserve.sh --fast"]}
`
	s, problems := spec.Parse([]byte(file), spec.Options{File: "queues.yaml"})
	fmt.Println("usable:", s != nil)
	fmt.Print(problems)
	// Output:
	// usable: false
	// queues.yaml:6:5: error: unknown key "max_attempt" in queues[1] [unknown-key]
	//   hint: did you mean "max_attempts"?
	// queues.yaml:8:22: error: exec is one item with spaces in it: "./reserve.sh --fast" [handler-command]
	//   hint: no shell splits it; write the program and each argument as items of their own: ["./reserve.sh", "--fast"]
}

// What stands for ${VAR} is asked of LookupEnv, and shown nowhere.
func ExampleParse_environment() {
	env := map[string]string{"AMQP_URL": "amqp://orders:secret@mq.example/shop"}
	s, problems := spec.Parse([]byte(`
version: 1
broker: {url: "${AMQP_URL}"}
queues:
  - {name: orders, type: quorum}
`), spec.Options{LookupEnv: func(name string) (string, bool) { v, ok := env[name]; return v, ok }})
	if problems.HasErrors() {
		fmt.Print(problems)
		return
	}
	vhost, err := spec.VHost(s.Broker.URL.Value)
	fmt.Println(vhost, err)
	fmt.Println(s.Broker)
	// Output:
	// shop <nil>
	// ${AMQP_URL}
}
