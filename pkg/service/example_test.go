package service_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rsctl/rsctl/pkg/confirm"
	"github.com/rsctl/rsctl/pkg/hooks"
	"github.com/rsctl/rsctl/pkg/service"
	"github.com/rsctl/rsctl/pkg/spec"
	"github.com/rsctl/rsctl/pkg/topology"
	"github.com/rsctl/rsctl/pkg/topology/broker"
)

// A Go function handles the messages of a queue. The spec says all the rest: here how
// often a message may be tried and where it goes when it is spent.
func Example_handlerInGo() {
	const file = `
version: 1
declare_topology: true
queues:
  - {name: orders, type: quorum, max_attempts: 3, dead_letter: orders.dead}
`
	s, problems := spec.Parse([]byte(file), spec.Options{File: "queues.yaml", LookupEnv: os.LookupEnv})
	if problems.HasErrors() {
		fmt.Print(problems)
		return
	}
	reserve := func(_ context.Context, m hooks.Message) (hooks.Outcome, error) {
		fmt.Printf("attempt %d of %d: %s\n", m.Attempt, m.MaxAttempts, m.Body)
		if m.Attempt < 2 {
			return hooks.Outcome{Verdict: hooks.Retry, Reason: "the stock is locked"}, nil
		}
		return hooks.Outcome{Verdict: hooks.Ack}, nil
	}
	orders, err := service.New(s, service.Options{
		Handlers: map[string]service.Handler{"orders": {Hook: hooks.Func(reserve)}},
		Drain:    true, // end when the queue is empty
		Log:      slog.New(slog.DiscardHandler),
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	publish(s, "orders", "3 apples")

	if err := orders.Run(context.Background()); err != nil {
		fmt.Println(err)
	}
	// Output:
	// attempt 1 of 3: 3 apples
	// attempt 2 of 3: 3 apples
}

// Stop ends a service from elsewhere in the program: it takes no new delivery and waits
// for the running handlers, for as long as its context allows.
func ExampleService_Stop() {
	const file = `
version: 1
declare_topology: true
queues:
  - {name: mails, type: classic}
`
	s, problems := spec.Parse([]byte(file), spec.Options{LookupEnv: os.LookupEnv})
	if problems.HasErrors() {
		fmt.Print(problems)
		return
	}
	sent := make(chan string)
	send := func(_ context.Context, m hooks.Message) (hooks.Outcome, error) {
		sent <- string(m.Body)
		return hooks.Outcome{Verdict: hooks.Ack}, nil
	}
	mails, err := service.New(s, service.Options{
		Handlers: map[string]service.Handler{"mails": {Hook: hooks.Func(send)}},
		Log:      slog.New(slog.DiscardHandler),
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	publish(s, "mails", "welcome")

	go func() { _ = mails.Run(context.Background()) }() // Stop returns its error
	fmt.Println(<-sent)
	fmt.Println("stopped:", mails.Stop(context.Background()))
	// Output:
	// welcome
	// stopped: <nil>
}

// The handlers of a spec need no Go: this is what "rsctl run" does. New finds what
// cannot be run; Run would find that the command is missing before the first message.
func ExampleNew() {
	const file = `
version: 1
queues:
  - {name: orders, type: classic, handler: {exec: [./reserve.sh]}}
`
	s, problems := spec.Parse([]byte(file), spec.Options{File: "queues.yaml", Dir: "/", LookupEnv: os.LookupEnv})
	if problems.HasErrors() {
		fmt.Print(problems)
		return
	}
	_, err := service.New(s, service.Options{
		Queues:   []string{"bills"},
		Handlers: map[string]service.Handler{"orders": {}},
	})
	fmt.Println(err)

	orders, err := service.New(s, service.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(orders.CheckHandlers(context.Background()))
	// Output:
	// cannot start:
	//   queues.yaml:4:44: queue "orders" has a handler in the spec and one in Options.Handlers
	//   queues.yaml: there is no queue "bills"
	// cannot start: queues.yaml:4:44: handler of queue "orders": exec /reserve.sh: no such file or directory
}

// A handler of a batch gets several messages in one call, and gives an outcome for each.
func Example_batch() {
	const file = `
version: 1
declare_topology: true
queues:
  - {name: rows, type: classic, prefetch: 3, batch: {size: 3, wait: 10s}}
`
	s, problems := spec.Parse([]byte(file), spec.Options{LookupEnv: os.LookupEnv})
	if problems.HasErrors() {
		fmt.Print(problems)
		return
	}
	rows, err := service.New(s, service.Options{
		Handlers: map[string]service.Handler{"rows": {Hook: insert{os.Stdout}}},
		Drain:    true,
		Log:      slog.New(slog.DiscardHandler),
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	publish(s, "rows", "a", "b", "c")
	if err := rows.Run(context.Background()); err != nil {
		fmt.Println(err)
	}
	// Output:
	// inserting 3 rows
}

// insert is a handler of batches. Its Handle serves a queue without batch.
type insert struct{ out io.Writer }

func (h insert) Handle(ctx context.Context, m hooks.Message) (hooks.Outcome, error) {
	all, err := h.HandleBatch(ctx, []hooks.Message{m})
	if err != nil {
		return hooks.Outcome{}, err
	}
	return all[0], nil
}

func (h insert) HandleBatch(_ context.Context, ms []hooks.Message) ([]hooks.Outcome, error) {
	fmt.Fprintf(h.out, "inserting %d rows\n", len(ms))
	return hooks.Spread([]hooks.Outcome{{Verdict: hooks.Ack}}, len(ms)), nil
}

// publish declares what s declares and puts messages into one of its queues.
func publish(s *spec.Spec, queue string, bodies ...string) {
	ctx := context.Background()
	session, err := broker.Open(ctx, s.Broker, "publish")
	if err != nil {
		panic(err)
	}
	defer session.Close()
	if _, err := broker.Apply(ctx, session, topology.Compile(s, session.Server()), nil); err != nil {
		panic(err)
	}
	ch, err := confirm.Open(session.Conn(), 1)
	if err != nil {
		panic(err)
	}
	for _, body := range bodies {
		p, err := ch.Send(&confirm.Message{Key: queue, Mandatory: true, Publishing: amqp.Publishing{Body: []byte(body)}})
		if err == nil {
			err = p.Wait(ctx)
		}
		if err != nil {
			panic(err)
		}
	}
}
