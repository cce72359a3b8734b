package broker

import (
	"context"
	"errors"
	"reflect"
	"strings"
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rsctl/rsctl/pkg/settle"
	"github.com/rsctl/rsctl/pkg/topology"
)

// The texts of these tables are those of RabbitMQ 3.10, 4.0 and 4.3.

func TestParseInequivalent(t *testing.T) {
	t.Parallel()
	want := form{
		flags: map[string]bool{"durable": true, "exclusive": true, "auto_delete": false},
		arguments: amqp.Table{"x-queue-type": "quorum", "x-message-ttl": int64(20000), "x-delivery-limit": "2",
			"x-dead-letter-routing-key": "it's"},
	}
	const prefix = "PRECONDITION_FAILED - inequivalent arg "
	tests := []struct {
		name   string
		code   int
		reason string
		want   string // "": no difference
	}{
		{"an argument that is not there", 406, prefix + "'x-message-ttl' for queue 'q' in vhost '/': received the value '20000' of type 'long' but current is none", "x-message-ttl: have none, want 20000"},
		{"one of the same type", 406, prefix + "'x-message-ttl' for queue 'q' in vhost '/': received '20000' but current is '300'", "x-message-ttl: have 300, want 20000"},
		{"one that is not wanted", 406, prefix + "'x-max-length' for queue 'q' in vhost '/': received none but current is the value '5' of type 'long'", "x-max-length: have 5, want none"},
		{"a text that is not wanted", 406, prefix + "'x-overflow' for queue 'q' in vhost '/': received none but current is the value 'drop-head' of type 'longstr'", `x-overflow: have "drop-head", want none`},
		{"a number as text", 406, prefix + "'x-delivery-limit' for queue 'q' in vhost '/': received '2' but current is '2'", `x-delivery-limit: have "2" of another type, want "2"`},
		{"texts with quotes", 406, prefix + "'x-dead-letter-routing-key' for queue 'it's' in vhost 'a'b': received 'it's' but current is 'x' of 'y'", `x-dead-letter-routing-key: have "x' of 'y", want "it's"`},
		{"the type", 406, prefix + "'x-queue-type' for queue 'q' in vhost '/': received 'quorum' but current is 'classic'", "is classic, want quorum"},
		{"a queue that 3.x knows no type of", 406, prefix + "'x-queue-type' for queue 'q' in vhost '/': received the value 'quorum' of type 'longstr' but current is none", "is classic, want quorum"},
		{"a flag", 406, prefix + "'durable' for queue 'q' in vhost '/': received 'true' but current is 'false'", "durable: have false, want true"},
		{"exclusive is told as a lock", 405, "RESOURCE_LOCKED - cannot obtain exclusive access to locked queue 'q' in vhost '/'. It could be originally declared on another connection or the exclusive property value does not match that of the original declaration.", "exclusive: have false, want true"},
		{"an argument that the server refuses", 406, "PRECONDITION_FAILED - invalid arg 'x-message-ttl' for queue 'q' in vhost '/': {value_negative,-1}", ""},
		{"a text that was cut at 255 bytes", 406, prefix + "'x-message-ttl' for queue 'qqqqqq", ""},
		{"another answer", 404, "NOT_FOUND - no queue 'q' in vhost '/'", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			d, ok := parseInequivalent(&amqp.Error{Code: tt.code, Reason: tt.reason, Server: true}, want)
			if ok != (tt.want != "") || ok && d.String() != tt.want {
				t.Errorf("%q, %t; want %q", d.String(), ok, tt.want)
			}
		})
	}
}

func TestRefuse(t *testing.T) {
	t.Parallel()
	queue := Finding{Kind: kindQueue, Name: "orders"}
	binding := Finding{Kind: kindBinding, Name: "events -> orders (k)"}
	tests := []struct {
		name    string
		finding Finding
		code    int
		reason  string
		state   State
		detail  string
	}{
		{"configure, 3.x", queue, 403, "ACCESS_REFUSED - access to queue 'orders' in vhost '/' refused for user 'lim'", Refused, `user "lim" needs configure permission on queue "orders"`},
		{"configure, 4.x", queue, 403, "ACCESS_REFUSED - configure access to queue 'orders' in vhost '/' refused for user 'lim'", Refused, `user "lim" needs configure permission on queue "orders"`},
		{"write on the dead-letter exchange, 3.x", queue, 403, "ACCESS_REFUSED - access to exchange 'amq.default' in vhost '/' refused for user 'lim'", Refused, `user "lim" needs write permission on exchange "amq.default", for what`},
		{"read on the source, 3.x", binding, 403, "ACCESS_REFUSED - access to exchange 'events' in vhost '/' refused for user 'lim'", Refused, `user "lim" needs read permission on exchange "events", for what`},
		{"write on the destination, 3.x", binding, 403, "ACCESS_REFUSED - access to queue 'orders' in vhost '/' refused for user 'lim'", Refused, `user "lim" needs write permission on queue "orders", for what`},
		{"a reserved name", queue, 403, "ACCESS_REFUSED - queue name 'amq.x' contains reserved prefix 'amq.*'", Refused, "queue name 'amq.x' contains reserved prefix"},
		{"a missing exchange", binding, 404, "NOT_FOUND - no exchange 'events' in vhost '/'", Missing, `exchange "events" does not exist`},
		{"a locked queue", queue, 405, "RESOURCE_LOCKED - cannot obtain exclusive access to locked queue 'orders' in vhost '/'", Refused, "locked by another connection (exclusive)"},
		{"an unknown type, 3.x", queue, 503, "COMMAND_INVALID - unknown exchange type 'x-delayed-message'", Refused, `exchange type "x-delayed-message" is not available`},
		{"an unknown type, 4.x", queue, 406, "PRECONDITION_FAILED - unknown exchange type 'x-delayed-message'", Refused, `exchange type "x-delayed-message" is not available`},
		{"anything else in the server's words", queue, 541, "INTERNAL_ERROR", Refused, "INTERNAL_ERROR"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got := refuse(tt.finding, &amqp.Error{Code: tt.code, Reason: tt.reason, Server: true}, "what")
			if got.State != tt.state || !strings.Contains(got.Detail, tt.detail) || got.Code != tt.code {
				t.Errorf("%s (%d); want %s: %s", got, got.Code, tt.state, tt.detail)
			}
		})
	}
	if hint := pluginHint("x-delayed-message"); !strings.Contains(hint, "rabbitmq_delayed_message_exchange") {
		t.Errorf("hint %q does not name the plugin", hint)
	}
}

func TestRefusedOpenLeavesWhatPassesToAnotherTry(t *testing.T) {
	t.Parallel()
	uri := amqp.URI{Host: "mq", Port: 5672, Username: "lim", Vhost: "/"}
	tests := []struct {
		reason    string
		code      int
		permanent bool
	}{
		{"ACCESS_REFUSED - Login was refused using authentication mechanism PLAIN.", 403, true},
		{"NOT_ALLOWED - vhost nope not found", 530, true},
		{"NOT_ALLOWED - access to vhost '/' refused for user 'lim'", 530, true},
		{"NOT_ALLOWED - access to vhost '/' refused for user 'lim': connection limit (1) is reached", 530, false},
		{"NOT_ALLOWED - connection refused for user 'lim': user connection limit (1) is reached", 530, false},
		{"NOT_ALLOWED - vhost '/' is down", 541, false},
	}
	for _, tt := range tests {
		t.Run(tt.reason, func(t *testing.T) {
			t.Parallel()
			err := refusedOpen("connect to mq:5672", uri, &amqp.Error{Code: tt.code, Reason: tt.reason, Server: true})
			var refusal *Refusal
			if errors.As(err, &refusal) != tt.permanent {
				t.Errorf("%v; permanent %t, want %t", err, !tt.permanent, tt.permanent)
			}
		})
	}
}

func TestPoliciesAreMergedAsTheServerDoes(t *testing.T) {
	t.Parallel()
	v := &view{
		queues:   map[string]apiQueue{"q": {Policy: "p", OperatorPolicy: "o"}, "plain": {}},
		policies: map[string]apiPolicy{"p": {Definition: map[string]any{"delivery-limit": 5.0, "message-ttl": 100.0, "dead-letter-exchange": "e"}}},
		operator: map[string]apiPolicy{"o": {Definition: map[string]any{"delivery-limit": 3.0, "message-ttl": 500.0, "max-length": 9.0}}},
	}
	want := map[string]any{"delivery-limit": 3.0, "message-ttl": 100.0, "dead-letter-exchange": "e", "max-length": 9.0}
	if got := v.policyOf("q"); !reflect.DeepEqual(got, want) {
		t.Errorf("policyOf(q) = %v, want %v", got, want)
	}
	if got := v.policyOf("plain"); len(got) > 0 {
		t.Errorf("policyOf(plain) = %v", got)
	}
}

func TestALadderQueueWithAPolicyIsWarnedAbout(t *testing.T) {
	t.Parallel()
	q := topology.Queue{Name: "rsctl.v1.level-00", Type: settle.Quorum, Origin: topology.Origin{Role: topology.RoleLadder}}
	got := policyLosses(q, map[string]any{"delivery-limit": 2.0, "expires": 5.0, "queue-leader-locator": "balanced"}, topology.Server{})
	if len(got) != 2 || !strings.Contains(got[0], "delivery-limit 2") || !strings.Contains(got[1], "delayed retries can be lost") {
		t.Errorf("policyLosses() = %q", got)
	}
}

func TestAQuestionEndsWithItsContextOrItsConnection(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	if err := lost(ctx, amqp.ErrClosed); err == nil || !strings.Contains(err.Error(), "connection lost") {
		t.Errorf("%v, want a lost connection", err)
	}
	cancel()
	if err := lost(ctx, amqp.ErrClosed); !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want the context's error", err)
	}
}

func TestArgumentsOfEveryShapeGoOut(t *testing.T) {
	t.Parallel()
	got := table(map[string]any{"a": int64(1), "b": []any{"x", map[string]any{"c": true}}, "d": map[string]any{"e": 1.5}})
	want := amqp.Table{"a": int64(1), "b": []any{"x", amqp.Table{"c": true}}, "d": amqp.Table{"e": 1.5}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("table() = %#v, want %#v", got, want)
	}
	if err := got.Validate(); err != nil {
		t.Error(err)
	}
}
