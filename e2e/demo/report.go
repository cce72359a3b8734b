package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"

	amqp "github.com/rabbitmq/amqp091-go"
)

// seen is what became of the orders, found out from outside of rsctl.
type seen struct {
	attempts map[string]int             // handler calls by message id
	last     map[string]string          // the last answer by message id
	dead     map[string]map[string]note // by dead-letter queue and message id
	ready    map[string]int             // messages left, by queue
}

// A note says why a message lies in a dead-letter queue.
type note string

func newSeen() *seen {
	return &seen{dead: map[string]map[string]note{}, ready: map[string]int{}}
}

// look reads the journal that the handlers kept, and moves what lies in the
// dead-letter queues into s.
func (s *seen) look(url, journal string) error {
	if err := s.read(journal); err != nil {
		return err
	}
	conn, err := amqp.Dial(url)
	if err != nil {
		return err
	}
	defer conn.Close()
	ch, err := conn.Channel()
	if err != nil {
		return err
	}
	for _, q := range queues {
		left, err := ch.QueueDeclarePassive(q.name, false, false, false, false, nil)
		if err != nil {
			return err
		}
		s.ready[q.name] = left.Messages
		if s.dead[q.name] == nil {
			s.dead[q.name] = map[string]note{}
		}
		if err := take(ch, q.name+".dead", s.dead[q.name]); err != nil {
			return err
		}
	}
	return nil
}

func (s *seen) read(journal string) error {
	data, err := os.ReadFile(journal)
	if err != nil {
		return err
	}
	s.attempts, s.last = map[string]int{}, map[string]string{}
	for line := range strings.Lines(string(data)) {
		fields := strings.Fields(line) // queue, id, attempt, answer
		s.attempts[fields[1]]++
		s.last[fields[1]] = fields[3]
	}
	return nil
}

func take(ch *amqp.Channel, queue string, into map[string]note) error {
	for {
		d, ok, err := ch.Get(queue, true)
		if err != nil || !ok {
			return err
		}
		into[d.MessageId] = why(d.Headers)
	}
}

// why reads rsctl's own headers, which classic queues' dead letters carry, or
// the server's record.
func why(h amqp.Table) note {
	if text, ok := h["x-rsctl-error"].(string); ok {
		return note(fmt.Sprintf("x-rsctl-attempts: %v, x-rsctl-error: %s", h["x-rsctl-attempts"], text))
	}
	reason, _ := h["x-first-death-reason"].(string)
	said := map[string]string{
		"rejected":       "dropped by its handler, moved here by RabbitMQ",
		"delivery_limit": "tried as often as it may be, moved here by RabbitMQ",
	}[reason]
	return note(fmt.Sprintf("%s (x-first-death-reason: %s)", said, reason))
}

// end says how a message ended.
func (s *seen) end(o order) string {
	_, isDead := s.dead[o.queue][o.id]
	switch {
	case s.last[o.id] == "ack" && !isDead:
		return acked
	case s.last[o.id] == "drop":
		return dropped
	case s.last[o.id] == "retry" && isDead:
		return spent
	}
	return "lost sight of"
}

// wrong lists what did not become of the orders as it should have.
func (s *seen) wrong() []string {
	var list []string
	for _, o := range orders {
		if got := s.end(o); got != o.end || s.attempts[o.id] != o.attempts {
			list = append(list, fmt.Sprintf("%s: %s after %d attempts, want %s after %d", o.id, got, s.attempts[o.id], o.end, o.attempts))
		}
		if _, isDead := s.dead[o.queue][o.id]; isDead != o.inDeadLetter() {
			list = append(list, fmt.Sprintf("%s: in %s.dead: %v, want %v", o.id, o.queue, isDead, o.inDeadLetter()))
		}
	}
	for _, q := range queues {
		if s.ready[q.name] != 0 {
			list = append(list, fmt.Sprintf("%s still holds %d messages", q.name, s.ready[q.name]))
		}
	}
	return list
}

// print writes both tables.
func (s *seen) print(out io.Writer) {
	tw := tabwriter.NewWriter(out, 0, 0, 3, ' ', 0)
	fmt.Fprintln(tw, "  MESSAGE\tQUEUE\tSTORY\tATTEMPTS\tENDED")
	for _, o := range orders {
		end := s.end(o)
		if _, isDead := s.dead[o.queue][o.id]; isDead {
			end += ", now in " + o.queue + ".dead"
		}
		fmt.Fprintf(tw, "  %s\t%s\t%s\t%d\t%s\n", o.id, o.queue, o.story, s.attempts[o.id], end)
	}
	tw.Flush()
	fmt.Fprintln(out)
	fmt.Fprintln(tw, "  QUEUE\tTYPE\tLEFT\tWHY")
	for _, q := range queues {
		fmt.Fprintf(tw, "  %s\t%s\t%d\t\n", q.name, q.kind, s.ready[q.name])
		fmt.Fprintf(tw, "  %s.dead\t\t%d\t\n", q.name, len(s.dead[q.name]))
		for _, o := range orders {
			if why, ok := s.dead[q.name][o.id]; ok && o.queue == q.name {
				fmt.Fprintf(tw, "    %s\t\t\t%s\n", o.id, why)
			}
		}
	}
	tw.Flush()
}
