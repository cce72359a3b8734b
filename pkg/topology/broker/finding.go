package broker

import (
	"strings"

	amqp "github.com/rabbitmq/amqp091-go"
)

func conflict(f Finding, ds []difference, first *amqp.Error) Finding {
	f.State, f.Code, f.Detail = Conflict, codePrecondition, joinDifferences(ds)
	if len(ds) == 0 {
		f.Detail = words(first)
	}
	f.Hint = "the server never changes an existing " + f.Kind + ": delete it when it is empty and apply again, or correct the spec"
	return f
}

// warn adds what may be lost to a finding that is otherwise fine.
func warn(f Finding, losses []string) Finding {
	if len(losses) == 0 {
		return f
	}
	f.State = Warned
	if f.Detail != "" {
		losses = append([]string{f.Detail}, losses...)
	}
	f.Detail = strings.Join(losses, "; ")
	return f
}
