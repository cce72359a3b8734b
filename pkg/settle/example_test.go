package settle_test

import (
	"fmt"
	"time"

	"github.com/rsctl/rsctl/pkg/hooks"
	"github.com/rsctl/rsctl/pkg/settle"
)

// A failed attempt is retried until the queue's cap, and then ends in its dead-letter
// queue. On a classic queue rsctl counts, in the copies that it publishes.
func ExampleDecide() {
	orders := settle.Policy{
		Queue:       "orders",
		Type:        settle.Classic,
		MaxAttempts: 3,
		DeadLetter:  "orders.dead",
	}
	failed := hooks.Outcome{Verdict: hooks.Retry, Reason: "the stock is locked"}
	for _, counted := range []int{0, 2} {
		facts := settle.Facts{Attempt: settle.Attempt(orders.Type, counted, 0), Counted: counted}
		fmt.Printf("attempt %d\n", facts.Attempt)
		for _, step := range settle.Decide(facts, failed, orders) {
			fmt.Println("-", settle.Describe(step))
		}
	}
	// Output:
	// attempt 1
	// - copy to orders through the default exchange, count 1, confirmed
	// - basic.reject(requeue=false)
	// attempt 3
	// - copy to orders.dead through the default exchange, confirmed
	// - basic.reject(requeue=false)
}

// Who executes the steps switches over their types. The set is closed.
func ExampleStep() {
	mails := settle.Policy{Queue: "mails", Type: settle.Quorum}
	later := hooks.Outcome{Verdict: hooks.RetryAfter, Delay: 30 * time.Second}
	for _, step := range settle.Decide(settle.Facts{Attempt: 1}, later, mails) {
		switch s := step.(type) {
		case settle.Warn:
			fmt.Println("warn:", s.What)
		case settle.Reject:
			fmt.Println("basic.reject, requeue:", s.Requeue)
		default:
			fmt.Println(settle.Describe(s))
		}
	}
	// Output:
	// warn: delay dropped: a quorum queue without a delay requeues at once
	// basic.reject, requeue: true
}

// Recover says what becomes of a delivery that cannot end as Decide says.
func ExampleRecover() {
	orders := settle.Policy{Queue: "orders", Type: settle.Classic, MaxAttempts: 3, DeadLetter: "orders.dead"}
	facts := settle.Facts{Attempt: 1}
	for _, failure := range []settle.Failure{settle.Stopped, settle.CopyImpossible} {
		steps := settle.Recover(failure, facts, orders)
		fmt.Printf("%s: %s\n", failure, settle.Consequence(facts, steps, orders))
	}
	// Output:
	// the shutdown has ended the handler: back in the queue, not counted
	// a copy is too large, or refused for what it is: ends in orders.dead
}
