package broker_test

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rsctl/rsctl/pkg/spec"
	"github.com/rsctl/rsctl/pkg/topology"
	"github.com/rsctl/rsctl/pkg/topology/broker"
)

func TestCheckTellsExactlyWhatIsMissingAndWhatDiffers(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for _, name := range []string{"q1", "q3", "q6"} {
		b.declare(name, amqp.Table{"x-queue-type": "classic"})
	}
	b.declare("q4", amqp.Table{"x-queue-type": "quorum"})
	top := b.compile(queues(queue("q1", ack), queue("q2", ack), queue("q3", ack), queue("q4", ack), queue("q5", ack), queue("q6", ack)))
	want := []string{
		`queue "q1": ok`,
		`queue "q2": missing: does not exist`,
		`queue "q3": ok`,
		`queue "q4": conflict: is quorum, want classic`,
		`queue "q5": missing: does not exist`,
		`queue "q6": ok`,
		`permission "amq.default": ok`,
	}
	s := b.session()
	for range 2 {
		r, err := broker.Check(t.Context(), s, nil, top)
		if err != nil {
			t.Fatal(err)
		}
		if got := lines(r); !slices.Equal(got, want) {
			t.Errorf("Check():\n got %s\nwant %s", strings.Join(got, "\n     "), strings.Join(want, "\n     "))
		}
	}
	verified := b.verify(top)
	if err := verified.Err(); err == nil || err.Error() != `queue "q2": missing: does not exist; queue "q4": conflict: is quorum, want classic; queue "q5": missing: does not exist` {
		t.Errorf("Verify: Err() = %v", err)
	}
	var refusal *broker.Refusal
	if !errors.As(verified.Err(), &refusal) {
		t.Error("what is missing does not come by trying again: want a Refusal")
	}
}

func ack(q *spec.Queue) { q.RetryOriginal = spec.AckOriginal }

func TestCheckAndVerifyCreateNothing(t *testing.T) {
	t.Parallel()
	b := setup(t)
	s := everything()
	s.Queues = append(s.Queues, queue("ladder", func(q *spec.Queue) { q.Delay = &spec.Delay{Strategy: "levels"} }))
	top := b.compile(s)
	if r := b.check(top, b.management()); !r.Failed() {
		t.Errorf("nothing is there, and Check says\n%s", strings.Join(lines(r), "\n"))
	}
	if r := b.verify(top); !r.Failed() {
		t.Errorf("nothing is there, and Verify says\n%s", strings.Join(lines(r), "\n"))
	}
	if got := string(b.api(http.MethodGet, "queues/"+b.vhost, nil)); got != "[]" {
		t.Errorf("queues are there now: %s", got)
	}
	for _, x := range top.Exchanges {
		if strings.HasPrefix(x.Name, "amq.") {
			continue
		}
		if err := b.channel().ExchangeDeclarePassive(x.Name, "direct", true, false, false, false, nil); err == nil {
			t.Errorf("exchange %q is there now", x.Name)
		}
	}
}

func TestAUserWithoutTheDefaultExchangeIsToldWhichPermissionAndWhy(t *testing.T) {
	t.Parallel()
	b := setup(t)
	user, of := b.limited(`^lim\.`, `^lim\.`, `^lim\.`)
	s := queues(queue("lim.q", func(q *spec.Queue) {
		q.MaxAttempts, q.DeadLetter, q.Delay = 3, "lim.dead", &spec.Delay{Strategy: "dlx_ttl"}
	}))
	top := b.compile(s)
	r, err := broker.Apply(t.Context(), b.sessionOf(of), top, nil)
	if err != nil {
		t.Fatal(err)
	}
	want(t, find(t, r, "queue", "lim.q"), broker.Created, "")
	want(t, find(t, r, "queue", "lim.q.retry"), broker.Refused,
		`user "`+user+`" needs write permission on exchange "amq.default", for delayed retries of "lim.q"`)

	checked, err := broker.Check(t.Context(), b.sessionOf(of), nil, top)
	if err != nil {
		t.Fatal(err)
	}
	want(t, find(t, checked, "permission", "amq.default"), broker.Refused,
		`user "`+user+`" needs write permission on exchange "amq.default", for the copies of "lim.q"`)

	b.grant(user, `^lim\.`, `^(lim\..*|amq\.default)$`, `^lim\.`)
	again, err := broker.Apply(t.Context(), b.sessionOf(of), top, nil)
	if err != nil {
		t.Fatal(err)
	}
	allIn(t, again, broker.OK, broker.Created)
	checked, err = broker.Check(t.Context(), b.sessionOf(of), nil, top)
	if err != nil {
		t.Fatal(err)
	}
	allIn(t, checked, broker.OK)
}

func TestEveryMissingPermissionIsNamed(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ch := b.channel()
	if err := ch.ExchangeDeclare("theirs", "topic", true, false, false, false, nil); err != nil {
		t.Fatal(err)
	}
	user, of := b.limited(`^mine`, `^$`, `^$`)
	s := queues(
		queue("mine", func(q *spec.Queue) { q.Bindings = []spec.Binding{{Exchange: "theirs", RoutingKey: "k"}} }),
		queue("other", nil),
	)
	s.Exchanges = []spec.Exchange{{Name: "xtheirs", Type: "topic", Durable: true}}
	r, err := broker.Apply(t.Context(), b.sessionOf(of), b.compile(s), nil)
	if err != nil {
		t.Fatal(err)
	}
	want(t, find(t, r, "queue", "other"), broker.Refused, `user "`+user+`" needs configure permission on queue "other"`)
	want(t, find(t, r, "exchange", "xtheirs"), broker.Refused, `user "`+user+`" needs configure permission on exchange "xtheirs"`)
	want(t, find(t, r, "binding", "theirs -> mine (k)"), broker.Refused, `user "`+user+`" needs write permission on queue "mine"`)

	b.grant(user, `^mine`, `^mine`, `^$`)
	r, err = broker.Apply(t.Context(), b.sessionOf(of), b.compile(s), nil)
	if err != nil {
		t.Fatal(err)
	}
	want(t, find(t, r, "binding", "theirs -> mine (k)"), broker.Refused, `user "`+user+`" needs read permission on exchange "theirs"`)
}

func TestWhatAUserMayNotSeeIsNotVerifiedUnlessTheManagementAPIShowsIt(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.declare("good", amqp.Table{"x-queue-type": "classic"})
	b.declare("bad", amqp.Table{"x-queue-type": "quorum"})
	top := b.compile(queues(queue("good", nil), queue("bad", nil)))
	_, of := b.limited(`^$`, `.*`, `.*`)
	r, err := broker.Check(t.Context(), b.sessionOf(of), nil, top)
	if err != nil {
		t.Fatal(err)
	}
	want(t, find(t, r, "queue", "good"), broker.NotVerified, "configure permission")
	want(t, find(t, r, "queue", "bad"), broker.NotVerified, "configure permission")

	verified, err := broker.Verify(t.Context(), b.sessionOf(of), top)
	if err != nil {
		t.Fatal(err)
	}
	if verified.Failed() {
		t.Errorf("a user that may only consume is stopped: %v", verified.Err())
	}

	r, err = broker.Check(t.Context(), b.sessionOf(of), b.management(), top)
	if err != nil {
		t.Fatal(err)
	}
	want(t, find(t, r, "queue", "good"), broker.OK, "")
	want(t, find(t, r, "queue", "bad"), broker.Conflict, "is quorum, want classic")
}

func TestAQueueHeldByAnotherConnectionIsLockedNotMissing(t *testing.T) {
	t.Parallel()
	b := setup(t)
	holder := b.channel()
	if _, err := holder.QueueDeclare("excl", false, false, true, false, amqp.Table{"x-queue-type": "classic"}); err != nil {
		t.Fatal(err)
	}
	top := b.compile(queues(queue("excl", func(q *spec.Queue) { q.Durable, q.Exclusive = false, true })))
	for name, r := range map[string]*broker.Report{"Apply": b.apply(top), "Check": b.check(top, nil), "Verify": b.verify(top)} {
		want(t, find(t, r, "queue", "excl"), broker.Refused, "locked by another connection (exclusive)")
		var refusal *broker.Refusal
		if err := r.Err(); err == nil || errors.As(err, &refusal) {
			t.Errorf("%s: Err() = %v, want one that is worth another try", name, err)
		}
	}
	if _, err := holder.QueueDelete("excl", false, false, false); err != nil {
		t.Fatal(err)
	}
	want(t, find(t, b.apply(top), "queue", "excl"), broker.Created, "exclusive")
	want(t, find(t, b.check(top, nil), "queue", "excl"), broker.Refused, "locked")
}

func TestAnExternalQueueIsComparedOnlyInWhatTheSpecNames(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.declare("theirs", amqp.Table{"x-queue-type": "classic", "x-max-length": int64(3), "x-expires": int64(600000)})
	external := func(args map[string]any) *topology.Topology {
		return b.compile(queues(queue("theirs", func(q *spec.Queue) { q.External, q.Durable, q.Arguments = true, false, args })))
	}
	for _, r := range []*broker.Report{b.apply(external(nil)), b.check(external(nil), b.management())} {
		want(t, find(t, r, "queue", "theirs"), broker.OK, "")
	}
	r := b.check(external(map[string]any{"x-max-length": int64(4)}), nil)
	if f := find(t, r, "queue", "theirs"); f.State != broker.Conflict || f.Detail != "x-max-length: have 3, want 4" {
		t.Errorf("%s", f)
	}
}

func TestNativeDelaysAreRefusedOnAServerThatIgnoresThem(t *testing.T) {
	t.Parallel()
	b := setup(t)
	top := b.compile(queues(queue("q", func(q *spec.Queue) {
		q.Type, q.Delay = spec.Quorum, &spec.Delay{Strategy: "native", Min: time.Second, Max: time.Minute}
	})))
	applied := b.apply(top)
	if b.server().Native() {
		want(t, find(t, applied, "queue", "q"), broker.Created, "")
		allIn(t, b.check(top, b.management()), broker.OK)
		return
	}
	for _, r := range []*broker.Report{applied, b.check(top, b.management()), b.verify(top)} {
		want(t, find(t, r, "queue", "q"), broker.Refused, "delay: native needs RabbitMQ 4.3 or later, this server is "+b.server().Version)
	}
	if got := string(b.api(http.MethodGet, "queues/"+b.vhost, nil)); got != "[]" {
		t.Errorf("declared all the same: %s", got)
	}
}

func TestACancelledContextEndsTheAttempt(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ctx, cancel := context.WithCancel(t.Context())
	s := b.session()
	cancel()
	if _, err := broker.Apply(ctx, s, b.compile(queues(queue("q", nil))), nil); !errors.Is(err, context.Canceled) {
		t.Errorf("Apply() = %v, want the context's error", err)
	}
}

func TestAnExternalWaitingQueueMustLeadSomewhere(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.declare("back", amqp.Table{"x-queue-type": "classic", "x-dead-letter-exchange": "", "x-dead-letter-routing-key": "a"})
	b.declare("nowhere", amqp.Table{"x-queue-type": "classic"})
	external := func(q *spec.Queue) { q.External = true }
	waits := func(in string) func(*spec.Queue) {
		return func(q *spec.Queue) { q.Delay = &spec.Delay{Strategy: "dlx_ttl", WaitingQueue: in} }
	}
	top := b.compile(queues(queue("a", waits("back")), queue("b", waits("nowhere")), queue("back", external), queue("nowhere", external)))
	for _, r := range []*broker.Report{b.apply(top), b.check(top, nil)} {
		want(t, find(t, r, "queue", "back"), broker.OK, "")
		want(t, find(t, r, "queue", "nowhere"), broker.Warned, `copies of "b" that expire here are dropped`)
	}
}

func TestASessionDialsAgainWhenItsConnectionIsGone(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.declare("q", amqp.Table{"x-queue-type": "classic"})
	top := b.compile(queues(queue("q", nil)))
	gone, err := broker.Dial(t.Context(), b.broker, "first")
	if err != nil {
		t.Fatal(err)
	}
	if err := gone.Close(); err != nil {
		t.Fatal(err)
	}
	s := broker.On(gone, func(ctx context.Context) (*amqp.Connection, error) { return broker.Dial(ctx, b.broker, "second") })
	r, err := broker.Verify(t.Context(), s, top)
	if err != nil {
		t.Fatal(err)
	}
	want(t, find(t, r, "queue", "q"), broker.OK, "")
	second := s.Conn()
	if second == gone || second.IsClosed() {
		t.Fatal("the session has no connection of its own")
	}
	if err := s.Close(); err != nil || !second.IsClosed() {
		t.Errorf("Close() = %v, closed %t", err, second.IsClosed())
	}
	if _, err := broker.Verify(t.Context(), broker.On(gone, nil), top); err == nil {
		t.Error("no error without a connection and without a dialler")
	}
}
