package cli

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/spf13/cobra"

	"github.com/rsctl/rsctl/pkg/confirm"
	"github.com/rsctl/rsctl/pkg/topology/broker"
)

type requestFlags struct {
	messageFlags
	timeout time.Duration
}

func newRequest(a *app) *cobra.Command {
	var f requestFlags
	cmd := &cobra.Command{
		Use:   "request QUEUE",
		Short: "Send a request and print the answer",
		Long: `Send a message to QUEUE, wait for the answer and print its body.

The answer comes by RabbitMQ's direct reply-to, so no queue is declared for it.
Whoever consumes QUEUE must answer: "rsctl run" does for a handler with "reply:
true". The body, headers and properties are given as to "rsctl publish"; the
correlation id is random unless --property correlation_id sets one.

Exit code 0 when an answer came; 1 when none came within --timeout, or when no
queue took the request; 3 when the broker cannot be reached or refuses. A
request that timed out may still be handled.`,
		Example: `  rsctl request prices --body '{"sku":"A-1"}' --property content_type=application/json
  rsctl request prices --body A-1 --timeout 2s --output json
  echo A-1 | rsctl request prices > price.json`,
		Annotations:       map[string]string{formats: "text json"},
		Args:              between(1, 1, "a queue"),
		ValidArgsFunction: a.firstQueue,
		RunE: func(cmd *cobra.Command, args []string) error {
			f.resolve(cmd)
			return request(cmd.Context(), a, f, args[0])
		},
	}
	fl := cmd.Flags()
	f.bind(fl)
	fl.StringVar(&f.id, "id", "", "message `ID` (default: random)")
	fl.DurationVar(&f.timeout, "timeout", 30*time.Second, "wait this long for the answer")
	return cmd
}

func request(ctx context.Context, a *app, f requestFlags, queue string) error {
	switch {
	case queue == "":
		return usagef("", "the queue's name is empty")
	case f.timeout <= 0:
		return usagef("for example 30s", "--timeout must be above zero, got %s", f.timeout)
	}
	msg, err := a.message(f.messageFlags)
	if err != nil {
		return err
	}
	if msg.ReplyTo != "" {
		return usagef(`"rsctl publish" sends a message with a reply_to of its own`, "--property reply_to: request sets it itself")
	}
	msg.ReplyTo = directReplyTo
	msg.MessageId, msg.CorrelationId = cmp.Or(f.id, rand.Text()), cmp.Or(msg.CorrelationId, rand.Text())
	s, err := a.loadOptional()
	if err != nil {
		return err
	}
	ctx, stop := interruptible(ctx)
	defer stop()
	dialing, cancel := context.WithTimeoutCause(ctx, f.timeout, fmt.Errorf("gave up after %s (--timeout)", f.timeout))
	defer cancel()
	conn, err := broker.Dial(dialing, s.Broker, "request")
	if err != nil {
		return whyEnded(dialing, err)
	}
	defer conn.Close()
	to := destination{key: queue, queue: queue}
	answer, err := ask(ctx, conn, f.timeout, msg, to)
	return a.printAnswer(to, msg, answer, to.explain(err, s))
}

// directReplyTo is the pseudo-queue of direct reply-to: consumed without
// acknowledgements, on the channel that sends the request.
const directReplyTo = "amq.rabbitmq.reply-to"

// ask sends msg and waits for its answer.
func ask(ctx context.Context, conn *amqp.Connection, limit time.Duration, msg amqp.Publishing, to destination) (*amqp.Delivery, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, limit, &negative{
		fmt.Sprintf("no answer from %s within %s", to, limit),
		`is it consumed by something that answers, such as "rsctl run" with "reply: true"?`,
	})
	defer cancel()
	// A broker under an alarm stops reading; closing the connection is what ends
	// a publish that waits for it.
	stop := context.AfterFunc(ctx, func() { _ = conn.CloseDeadline(closeNow()) })
	defer stop()
	r, err := newRequester(conn)
	if err != nil {
		return nil, whyEnded(ctx, err)
	}
	answer, err := r.ask(ctx, msg, to)
	return answer, whyEnded(ctx, err)
}

// requester is a channel on which a request is sent and its answer comes.
type requester struct {
	ch      *amqp.Channel
	answers <-chan amqp.Delivery
	returns chan amqp.Return
	closed  chan *amqp.Error
}

func newRequester(conn *amqp.Connection) (*requester, error) {
	ch, err := conn.Channel()
	if err != nil {
		return nil, err
	}
	r := &requester{
		ch:      ch,
		returns: ch.NotifyReturn(make(chan amqp.Return, 1)),
		closed:  ch.NotifyClose(make(chan *amqp.Error, 1)),
	}
	if err := ch.Confirm(false); err != nil {
		return nil, err
	}
	r.answers, err = ch.Consume(directReplyTo, "", true, false, false, false, nil)
	return r, err
}

func (r *requester) ask(ctx context.Context, msg amqp.Publishing, to destination) (*amqp.Delivery, error) {
	sent, err := r.ch.PublishWithDeferredConfirm(to.exchange, to.key, true, false, msg)
	if err != nil {
		return nil, err
	}
	confirmed := sent.Done()
	for {
		select {
		case d, open := <-r.answers:
			switch {
			case !open:
				r.answers = nil // the reason is about to come
			case d.CorrelationId == msg.CorrelationId:
				return &d, nil
			}
		case <-r.returns:
			return nil, confirm.ErrReturned
		case <-confirmed: // the answer may come sooner
			confirmed = nil
			if !sent.Acked() && !r.ch.IsClosed() {
				return nil, confirm.ErrNacked
			}
		case closed := <-r.closed:
			return nil, closeError(closed)
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// closeError is why a channel has ended; the library gives no reason when we
// have ended it.
func closeError(reason *amqp.Error) error {
	if reason == nil {
		return errors.New("the connection was closed before an answer came")
	}
	return reason
}

// requestJSON is the form of "request --output json". A body that is not text is
// in base64.
type requestJSON struct {
	Queue         string `json:"queue"`
	MessageID     string `json:"message_id"`
	CorrelationID string `json:"correlation_id"`
	Answered      bool   `json:"answered"`
	ContentType   string `json:"content_type,omitempty"`
	Body          string `json:"body,omitempty"`
	BodyBase64    []byte `json:"body_base64,omitempty"`
	Error         string `json:"error,omitempty"`
}

func (a *app) printAnswer(to destination, msg amqp.Publishing, answer *amqp.Delivery, err error) error {
	if a.output.value == "json" {
		doc := requestJSON{Queue: to.queue, MessageID: msg.MessageId, CorrelationID: msg.CorrelationId, Error: errorText(err)}
		doc.fill(answer)
		return errors.Join(err, a.json(doc))
	}
	if answer == nil {
		return err
	}
	if c := a.stdout(); c.terminal {
		c.println(safe(strings.TrimSuffix(string(answer.Body), "\n")))
		return err
	}
	_, writeErr := a.sys.Out.Write(answer.Body)
	return errors.Join(err, writeErr)
}

func (doc *requestJSON) fill(answer *amqp.Delivery) {
	if answer == nil {
		return
	}
	doc.Answered, doc.ContentType = true, answer.ContentType
	if utf8.Valid(answer.Body) {
		doc.Body = string(answer.Body)
	} else {
		doc.BodyBase64 = answer.Body
	}
}
