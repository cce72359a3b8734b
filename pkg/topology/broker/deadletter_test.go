package broker_test

import (
	"encoding/json"
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rsctl/rsctl/pkg/spec"
	"github.com/rsctl/rsctl/pkg/topology/broker"
)

func TestTheDeadLetterQueueIsDeclaredByTheServersRules(t *testing.T) {
	t.Parallel()
	b := setup(t)
	r := b.apply(b.compile(queues(
		queue("classic", func(q *spec.Queue) { q.MaxAttempts, q.DeadLetter = 3, "classic.dead" }),
		queue("quorum", func(q *spec.Queue) { q.Type, q.MaxAttempts, q.DeadLetter = spec.Quorum, 3, "quorum.dead" }),
	)))
	allIn(t, r, broker.Created)
	limit, limited := b.arguments("quorum.dead")["x-delivery-limit"]
	if b.server().AtLeast(4, 0) != limited || limited && limit != json.Number("-1") {
		t.Errorf("RabbitMQ %s: x-delivery-limit of quorum.dead is %v", b.server().Version, limit)
	}
	if got := b.arguments("classic.dead")["x-queue-type"]; got != "classic" {
		t.Errorf("classic.dead is %v", got)
	}
}

func TestAnExistingDeadLetterQueueIsTakenWithAWarningWhereItLosesMessages(t *testing.T) {
	t.Parallel()
	b := setup(t)
	srv := b.server()
	quorum := func(args amqp.Table) amqp.Table {
		args["x-queue-type"] = "quorum"
		return args
	}
	tests := []struct {
		name   string
		typ    spec.QueueType
		have   amqp.Table
		warns  bool
		detail string
	}{
		{"a plain classic queue", spec.Classic, amqp.Table{}, false, ""},
		{"a classic queue behind a quorum one", spec.Quorum, amqp.Table{}, false, ""},
		{"a classic queue that forgets", spec.Classic, amqp.Table{"x-message-ttl": int64(1000)}, true, "x-message-ttl 1000 drops dead letters"},
		{"a quorum queue without a limit of its own", spec.Quorum, quorum(amqp.Table{}), srv.AtLeast(4, 0), "the server's default delivery limit of 20"},
		{"a quorum queue with a limit, behind a classic one", spec.Classic, quorum(amqp.Table{"x-delivery-limit": int64(5)}), true, "x-delivery-limit 5"},
		{"a quorum queue with the limit that 3.x takes for zero", spec.Quorum, quorum(amqp.Table{"x-delivery-limit": int64(-1)}), !srv.AtLeast(4, 0), "dropped when it is requeued"},
		{"a quorum queue with a length limit", spec.Quorum, quorum(amqp.Table{"x-delivery-limit": int64(-1), "x-max-length": int64(9)}), true, "x-max-length 9"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			work, dead := unique("work"), unique("dead")
			b.declare(dead, tt.have)
			top := b.compile(queues(queue(work, func(q *spec.Queue) { q.Type, q.MaxAttempts, q.DeadLetter = tt.typ, 2, dead })))
			for name, r := range map[string]*broker.Report{"Apply": b.apply(top), "Check": b.check(top, b.management())} {
				f := find(t, r, "queue", dead)
				state := broker.OK
				if tt.warns {
					state = broker.Warned
				}
				if f.State != state || r.Failed() {
					t.Errorf("%s: %s, failed %t; want %s", name, f, r.Failed(), state)
				}
				if tt.warns {
					want(t, f, state, tt.detail)
				}
			}
		})
	}
}

func TestALimitedDeadLetterQueueOfTheFileIsWarnedAbout(t *testing.T) {
	t.Parallel()
	b := setup(t)
	top := b.compile(queues(
		queue("work", func(q *spec.Queue) { q.Type, q.MaxAttempts, q.DeadLetter = spec.Quorum, 3, "dead" }),
		queue("dead", func(q *spec.Queue) { q.Type = spec.Quorum }),
	))
	state := broker.Created
	if b.server().AtLeast(4, 0) {
		state = broker.Warned
	}
	want(t, find(t, b.apply(top), "queue", "dead"), state, "")
}
