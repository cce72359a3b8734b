package broker

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"strings"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rsctl/rsctl/pkg/topology"
)

// The server's texts are the same on 3.10, 4.0 and 4.3, except that 3.x does not
// say which permission is missing.
var (
	accessText   = regexp.MustCompile(`(?s)(?:(configure|write|read) )?access to (\w+) '(.*)' in vhost '.*' refused for user '(.*)'`)
	notFoundText = regexp.MustCompile(`(?s)no (\w+) '(.*)' in vhost`)
	typeText     = regexp.MustCompile(`(?s)unknown exchange type '(.*)'`)
)

// plugins are the plugins that bring exchange types along.
var plugins = map[string]string{
	topology.DelayedMessageType: "rabbitmq_delayed_message_exchange",
	"x-consistent-hash":         "rabbitmq_consistent_hash_exchange",
	"x-random":                  "rabbitmq_random_exchange",
	"x-modulus-hash":            "rabbitmq_sharding",
	"x-recent-history":          "rabbitmq_recent_history_exchange",
	"x-jms-topic":               "rabbitmq_jms_topic_exchange",
}

// answerOf returns the server's answer in err; nil when there is none, which
// also holds for a nil err.
func answerOf(err error) *amqp.Error {
	var answer *amqp.Error
	if errors.As(err, &answer) {
		return answer
	}
	return nil
}

// refuse fills f from an answer that stopped the work on it. purpose says what
// a missing permission on another object would be for.
func refuse(f Finding, answer *amqp.Error, purpose string) Finding {
	f.State, f.Code = Refused, answer.Code
	switch {
	case answer.Code == codeLocked:
		f.Detail = "locked by another connection (exclusive)"
		f.Hint = "it is free when that connection closes"
	case typeText.MatchString(answer.Reason):
		name := typeText.FindStringSubmatch(answer.Reason)[1]
		f.Detail = fmt.Sprintf("exchange type %q is not available", name)
		f.Hint = pluginHint(name)
	case answer.Code == codeNotFound:
		f.State = Missing
		f.Detail = missingText(answer)
	case answer.Code == codeAccessRefused:
		f.Detail, f.Hint = accessDetail(f, answer, purpose)
	default:
		f.Detail = "the server refuses it: " + words(answer)
	}
	return f
}

func pluginHint(exchangeType string) string {
	if exchangeType == topology.DelayedMessageType {
		return "enable plugin " + plugins[exchangeType] + " on every node of the broker, or use delay: levels, which needs none; there is no such plugin for RabbitMQ 4.3"
	}
	if p, ok := plugins[exchangeType]; ok {
		return "enable plugin " + p + " on every node of the broker"
	}
	return "enable the plugin that brings this type, or correct the type"
}

func missingText(answer *amqp.Error) string {
	if m := notFoundText.FindStringSubmatch(answer.Reason); m != nil {
		return fmt.Sprintf("%s %q does not exist", m[1], m[2])
	}
	return words(answer)
}

// accessDetail names the missing permission and what it is for.
func accessDetail(f Finding, answer *amqp.Error, purpose string) (detail, hint string) {
	m := accessText.FindStringSubmatch(answer.Reason)
	if m == nil {
		return "the server refuses it: " + words(answer), ""
	}
	permission, kind, name, user := m[1], m[2], m[3], m[4]
	if permission == "" {
		permission = impliedPermission(f, kind, name)
	}
	detail = fmt.Sprintf("user %q needs %s permission on %s %q", user, permission, kind, name)
	if purpose != "" && name != f.Name {
		detail += ", for " + purpose
	}
	return detail, "grant it (rabbitmqctl set_permissions), or run as a user that has it"
}

// impliedPermission is what 3.x does not say: declaring needs configure on the
// object and write on the exchange its messages go to; binding needs read on
// the source and write on the destination.
func impliedPermission(f Finding, kind, name string) string {
	switch {
	case f.Kind == kindBinding && kind == kindExchange && strings.HasPrefix(f.Name, name+" -> "):
		return "read"
	case f.Kind == kindBinding, f.Kind == kindPermission, f.Name != name:
		return "write"
	}
	return "configure"
}

// purposeOf says why an object needs what it needs, for permission answers.
func purposeOf(o topology.Origin, arguments map[string]any) string {
	queues := quoteAll(o.Queues)
	switch _, limited := arguments["x-delivery-limit"]; {
	case o.Role == topology.RoleWaiting, o.Role == topology.RoleDelay, o.Role == topology.RoleLadder:
		return "delayed retries of " + queues
	case limited:
		return "the dead_letter of " + queues
	default:
		return "the dead-letter route of " + cmp.Or(queues, "the queue")
	}
}

func quoteAll(names []string) string {
	quoted := make([]string, len(names))
	for i, n := range names {
		quoted[i] = fmt.Sprintf("%q", n)
	}
	return strings.Join(quoted, ", ")
}
