package cli

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/rsctl/rsctl/pkg/spec"
)

type publishFlags struct {
	messageFlags
	exchange, routingKey string
	count                int
	timeout              time.Duration
}

func newPublish(a *app) *cobra.Command {
	var f publishFlags
	cmd := &cobra.Command{
		Use:   "publish [QUEUE]",
		Short: "Send a message",
		Long: `Send a message and wait until the broker has confirmed it.

The message goes to QUEUE through the default exchange, or to --exchange with
--routing-key. It is persistent, carries a message id and is mandatory: one that
no queue takes is an error, exit code 1. The id is printed, one line a message.

The body comes from --body, --body-file or standard input, in this order; at a
terminal without any of them it is empty. With --url no spec is needed.

Properties: app_id, content_encoding, content_type, correlation_id,
delivery_mode, expiration (milliseconds), priority, reply_to, timestamp (seconds
or RFC 3339), type, user_id.
Header values are text; name:=value takes true, false, null, numbers or JSON.`,
		Example: `  rsctl publish orders --body '{"sku":"A-1"}' --property content_type=application/json
  rsctl publish --exchange events --routing-key order.new --body-file order.json
  rsctl publish orders --count 1000 --body hello --header source=test --header tries:=3
  echo hello | rsctl publish orders`,
		Annotations:       map[string]string{formats: "text json"},
		Args:              between(0, 1, "a queue"),
		ValidArgsFunction: a.firstQueue,
		RunE: func(cmd *cobra.Command, args []string) error {
			f.resolve(cmd)
			return publish(cmd.Context(), a, f, args)
		},
	}
	f.bind(cmd)
	return cmd
}

func (f *publishFlags) bind(cmd *cobra.Command) {
	fl := cmd.Flags()
	f.messageFlags.bind(fl)
	fl.StringVar(&f.exchange, "exchange", "", "exchange to publish to instead of a queue, by `NAME`")
	fl.StringVar(&f.routingKey, "routing-key", "", "routing `KEY`; with --exchange")
	fl.StringVar(&f.id, "id", "", "message `ID`; with --count a number is appended (default: random)")
	fl.IntVar(&f.count, "count", 1, "send `N` messages")
	bindTimeout(cmd, &f.timeout)
}

func publish(ctx context.Context, a *app, f publishFlags, args []string) error {
	to, err := f.destination(args)
	if err != nil {
		return err
	}
	msg, err := a.message(f.messageFlags)
	if err != nil {
		return err
	}
	s, err := a.loadOptional()
	if err != nil {
		return err
	}
	ctx, stop := limited(ctx, f.timeout)
	defer stop()
	sent, err := sendAll(ctx, s.Broker, batch{to: to, msg: msg, id: f.id, count: f.count})
	return a.printSent(sent, to, s, whyEnded(ctx, err))
}

// destination checks that the flags go together and that exactly one of QUEUE
// and --exchange is given.
func (f publishFlags) destination(args []string) (destination, error) {
	switch {
	case f.count < 1:
		return destination{}, usagef("", "--count must be 1 or more, got %d", f.count)
	case len(args) == 1 && args[0] == "":
		return destination{}, usagef("", "the queue's name is empty")
	case len(args) == 1 && (f.exchange != "" || f.routingKey != ""):
		return destination{}, usagef("drop one of them", "a queue and --exchange or --routing-key were both given")
	case len(args) == 1:
		return destination{key: args[0], queue: args[0]}, nil
	case f.exchange == "":
		return destination{}, usagef(`for example: rsctl publish orders --body hello`, "no queue and no --exchange given")
	}
	return destination{exchange: f.exchange, key: f.routingKey}, nil
}

// loadOptional does without a spec when --url is given and the file is not there.
func (a *app) loadOptional() (*spec.Spec, error) {
	if a.url != "" && a.file != stdin {
		if _, err := os.Stat(a.file); errors.Is(err, fs.ErrNotExist) {
			s := &spec.Spec{}
			a.override(&s.Broker)
			return s, nil
		}
	}
	return a.load()
}

// publishJSON is the form of "publish --output json".
type publishJSON struct {
	Exchange   string   `json:"exchange"`
	RoutingKey string   `json:"routing_key"`
	Confirmed  int      `json:"confirmed"`
	MessageIDs []string `json:"message_ids"`
	Error      string   `json:"error,omitempty"`
}

func (a *app) printSent(sent []string, to destination, s *spec.Spec, err error) error {
	err = to.explain(err, s)
	if a.output.value == "json" {
		doc := publishJSON{to.exchange, to.key, len(sent), sent, errorText(err)}
		if sent == nil {
			doc.MessageIDs = []string{}
		}
		return errors.Join(err, a.json(doc))
	}
	for _, id := range sent {
		a.stdout().println(safe(id))
	}
	return err
}
