package cli

import (
	"context"
	"crypto/rand"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/rogpeppe/go-internal/testscript"
)

// The scripts in testdata/broker run against a real RabbitMQ. Each has a name
// prefix of its own in $P and deletes what it made with "remove".
func TestBrokerScripts(t *testing.T) {
	t.Parallel()
	url := brokerURL(t)
	uri, err := amqp.ParseURI(url)
	if err != nil {
		t.Fatal("RSCTL_AMQP_URL is not an AMQP URL")
	}
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/broker",
		Deadline:            time.Now().Add(8 * time.Minute), // a hung command is a failure, soon; a loaded machine is not
		RequireExplicitExec: true,
		Setup: func(env *testscript.Env) error {
			env.Setenv("AMQP_URL", url)
			env.Setenv("HOSTPORT", net.JoinHostPort(uri.Host, strconv.Itoa(uri.Port)))
			env.Setenv("P", "cli-"+strings.ToLower(rand.Text()[:8]))
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"code":    wantCodeInTime,
			"says":    cmdSays,
			"remove":  cmdRemove,
			"declare": cmdDeclare,
			"delete":  cmdDelete,
			"holds":   cmdHolds,
			"address": cmdAddress,
			"answers": cmdAnswers,
		},
	})
}

// patience bounds every wait, on however busy a machine.
const patience = 2 * time.Minute

// wantCodeInTime is wantCode that gives a short command, which gives up after 10 s
// by itself, the time that a busy machine may need.
func wantCodeInTime(ts *testscript.TestScript, neg bool, args []string) {
	short := []string{"apply", "check", "publish", "request"}
	if slices.ContainsFunc(args, func(a string) bool { return slices.Contains(short, a) }) && !slices.Contains(args, "--timeout") {
		args = append(slices.Clone(args), "--timeout", patience.String())
	}
	wantCode(ts, neg, args)
}

// cmdSays waits until a file has a text: "says run.log 'queue paused'".
func cmdSays(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: says FILE TEXT")
	}
	if !poll(func() bool {
		text, _ := os.ReadFile(ts.MkAbs(args[0]))
		return strings.Contains(string(text), args[1])
	}) {
		ts.Fatalf("%s does not say %q:\n%s", args[0], args[1], ts.ReadFile(args[0]))
	}
}

func brokerURL(t *testing.T) string {
	t.Helper()
	url := os.Getenv("RSCTL_AMQP_URL")
	if url == "" {
		t.Fatal("RSCTL_AMQP_URL is not set: it names the RabbitMQ these tests use, for example amqp://guest:guest@127.0.0.1:5672/")
	}
	return url
}

// onBroker runs do on a fresh channel.
func onBroker(ts *testscript.TestScript, do func(*amqp.Channel) error) error {
	conn, err := amqp.Dial(ts.Getenv("AMQP_URL"))
	ts.Check(err)
	defer conn.Close()
	ch, err := conn.Channel()
	ts.Check(err)
	return do(ch)
}

// cmdRemove deletes queues and exchanges when the script ends:
// "remove queue NAME..." or "remove exchange NAME...".
func cmdRemove(ts *testscript.TestScript, _ bool, args []string) {
	kind, names := args[0], args[1:]
	ts.Defer(func() {
		for _, name := range names {
			err := onBroker(ts, func(ch *amqp.Channel) error {
				if kind == "exchange" {
					return ch.ExchangeDelete(name, false, false)
				}
				_, err := ch.QueueDelete(name, false, false, false)
				return err
			})
			ts.Check(err)
		}
	})
}

// cmdDelete deletes a queue at once: "delete NAME".
func cmdDelete(ts *testscript.TestScript, _ bool, args []string) {
	ts.Check(onBroker(ts, func(ch *amqp.Channel) error {
		_, err := ch.QueueDelete(args[0], false, false, false)
		return err
	}))
}

// cmdDeclare declares a durable classic queue with other settings than a spec
// would: "declare NAME KEY=VALUE".
func cmdDeclare(ts *testscript.TestScript, _ bool, args []string) {
	table := amqp.Table{"x-queue-type": "classic"}
	for _, arg := range args[1:] {
		key, value, _ := strings.Cut(arg, "=")
		table[key] = value
		if n, err := strconv.ParseInt(value, 10, 64); err == nil {
			table[key] = n
		}
	}
	ts.Check(onBroker(ts, func(ch *amqp.Channel) error {
		_, err := ch.QueueDeclare(args[0], true, false, false, false, table)
		return err
	}))
}

// cmdHolds waits until a queue holds so many ready messages: "holds NAME 3".
func cmdHolds(ts *testscript.TestScript, neg bool, args []string) {
	want, err := strconv.Atoi(args[1])
	ts.Check(err)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	look := time.NewTicker(50 * time.Millisecond)
	defer look.Stop()
	got := -1
	for {
		err := onBroker(ts, func(ch *amqp.Channel) error {
			q, err := ch.QueueDeclarePassive(args[0], true, false, false, false, nil)
			got = q.Messages
			return err
		})
		if neg == (err != nil || got != want) {
			return
		}
		select {
		case <-look.C:
		case <-ctx.Done():
			ts.Fatalf("queue %s holds %d messages, want %d (%v)", args[0], got, want, err)
		}
	}
}
