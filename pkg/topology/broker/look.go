package broker

import (
	"context"
	"fmt"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rsctl/rsctl/pkg/topology"
)

// The kinds of a Finding.
const (
	kindExchange   = "exchange"
	kindQueue      = "queue"
	kindBinding    = "binding"
	kindPermission = "permission"
	kindManagement = "management API"
	kindTimeout    = "consumer timeout"
	kindCopies     = "copies"
)

// presence is what a passive declare tells.
type presence int

const (
	there presence = iota
	absent
	unseen // no permission to look: 4.3 asks for configure even then
	locked // there, but exclusive to another connection
)

// queuePresence asks whether a queue exists; existence is all that a passive
// declare proves. The answer is nil when it is there.
func (s *Session) queuePresence(ctx context.Context, name string) (presence, *amqp.Error, error) {
	return presenceOf(s.ask(ctx, func(ch *amqp.Channel) error {
		_, err := ch.QueueDeclarePassive(name, true, false, false, false, nil)
		return err
	}))
}

// exchangePresence is queuePresence for an exchange. The type is not compared,
// so that an unknown one does no harm here.
func (s *Session) exchangePresence(ctx context.Context, name string) (presence, *amqp.Error, error) {
	return presenceOf(s.ask(ctx, func(ch *amqp.Channel) error {
		return ch.ExchangeDeclarePassive(name, "direct", true, false, false, false, nil)
	}))
}

func presenceOf(err error) (presence, *amqp.Error, error) {
	if err == nil {
		return there, nil, nil
	}
	answer := answerOf(err)
	switch {
	case answer == nil:
		return unseen, nil, err
	case answer.Code == codeNotFound:
		return absent, answer, nil
	case answer.Code == codeLocked:
		return locked, answer, nil
	case answer.Code == codeAccessRefused:
		return unseen, answer, nil
	}
	return unseen, nil, err
}

func exchangeFinding(x topology.Exchange) Finding {
	return Finding{Kind: kindExchange, Name: x.Name, Origin: x.Origin}
}

func queueFinding(q topology.Queue) Finding {
	return Finding{Kind: kindQueue, Name: q.Name, Origin: q.Origin}
}

func bindingFinding(b topology.Binding) Finding {
	return Finding{Kind: kindBinding, Name: bindingName(b.Source, b.Destination, b.RoutingKey), Origin: b.Origin}
}

func bindingName(source, destination, key string) string {
	if key == "" {
		return source + " -> " + destination
	}
	return fmt.Sprintf("%s -> %s (%s)", source, destination, key)
}

// gone is the finding for something that must exist and does not.
func gone(f Finding) Finding {
	f.State, f.Code, f.Detail = Missing, codeNotFound, "does not exist"
	return f
}

// notSeen is the finding for something that the user may not look at.
func notSeen(f Finding, answer *amqp.Error, what string) Finding {
	detail, _ := accessDetail(f, answer, "")
	f.State, f.Code, f.Detail = NotVerified, answer.Code, what+" not visible: "+detail
	return f
}

// tooOld refuses the server's own delayed retry on a server that would accept
// the arguments and ignore them.
func tooOld(q topology.Queue, srv topology.Server) (Finding, bool) {
	f := queueFinding(q)
	if _, native := q.Arguments["x-delayed-retry-type"]; !native || srv.Native() {
		return f, false
	}
	f.State = Refused
	f.Detail = fmt.Sprintf("delay: native needs RabbitMQ 4.3 or later, this server is %s", srv.Version)
	f.Hint = "use levels, or dlx_ttl with tiers"
	return f, true
}
