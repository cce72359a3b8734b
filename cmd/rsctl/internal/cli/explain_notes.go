package cli

import (
	"cmp"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/rsctl/rsctl/pkg/settle"
	"github.com/rsctl/rsctl/pkg/spec"
	"github.com/rsctl/rsctl/pkg/topology"
)

// notes says in words what the spec means for q.
func notes(s *spec.Spec, q *spec.Queue) []note {
	p := topology.Policy(q)
	out := []note{
		{"type", typeNote(q, p)},
		{"attempts", attemptsNote(q)},
		{"drop", dropNote(q)},
		{"delay", delayNote(q, p)},
	}
	if q.Backoff != nil {
		out = append(out, note{"backoff", backoffNote(q, *p.Backoff)})
	}
	if text := outageNote(q); text != "" {
		out = append(out, note{"outage", text})
	}
	out = append(out,
		note{"expiration", expirationNote(q, p)},
		note{"crash", crashNote(q)},
		note{"frames", "a handler's outcome is settled by basic.ack or basic.reject. basic.nack only hands back what no handler has seen: since RabbitMQ 4.3 it does not count toward a delivery limit, and a reject does."},
	)
	if q.OrderedBy != nil {
		out = append(out, note{"order", orderNote(q)})
	}
	if q.Batch != nil {
		out = append(out, note{"batch", batchNote(q)})
	}
	if q.Rate > 0 {
		out = append(out, note{"rate", fmt.Sprintf("at most one handler call every %s, in each process.", short(time.Duration(float64(time.Second)/q.Rate)))})
	}
	if q.Breaker != nil {
		out = append(out, note{"breaker", fmt.Sprintf("after %d failures in a row the queue is paused for %s and spends no attempt; then one message tries the handler.", q.Breaker.Failures, short(q.Breaker.Cooldown))})
	}
	if q.Handler != nil {
		out = append(out, note{"handler", handlerNote(s, q)})
	} else {
		out = append(out, note{"handler", `none: "rsctl run" does not consume this queue.`})
	}
	return out
}

func typeNote(q *spec.Queue, p settle.Policy) string {
	switch {
	case q.Type == spec.Quorum && waitsAsCopy(p):
		return "quorum: the server counts attempts in x-delivery-count. A plain retry is a requeue; a delayed one is a copy, for which the server starts anew, so rsctl adds up both counts."
	case q.Type == spec.Quorum:
		return "quorum: the server counts attempts in x-delivery-count; a retry is a requeue, not a copy."
	}
	if q.MaxAttempts == 0 {
		return "classic: nobody counts attempts; a plain retry is a requeue."
	}
	return "classic: rsctl counts attempts in the header x-ruststream-retry-count of the copies it publishes; a retry goes to the back of the queue."
}

func attemptsNote(q *spec.Queue) string {
	dead := fmt.Sprintf("goes to %q", q.DeadLetter)
	switch {
	case q.MaxAttempts == 0 && q.Type == spec.Quorum:
		return limitNote(q, topology.Policy(q))
	case q.MaxAttempts == 0 && q.Backoff == nil && q.Handler != nil:
		return fmt.Sprintf("no cap: a message that always fails is tried for ever, and stays at the head of its queue. As many of them as prefetch has places (%d) keep all others waiting; max_attempts, or a backoff, takes them away from there.", q.Prefetch)
	case q.MaxAttempts == 0:
		return "no cap: a message that always fails is tried for ever."
	case q.DeadLetter == "":
		return fmt.Sprintf("%d, the first delivery counted. A spent message is discarded unless the queue has a dead-letter exchange of its own.", q.MaxAttempts)
	case q.Type == spec.Quorum && q.DeadLetterBy == spec.DeadLetterByRsctl:
		return fmt.Sprintf("%d, the first delivery counted. A copy of a spent message %s, with the reason in its headers; the server dead-letters one whose attempts end with crashes (x-delivery-limit %d).", q.MaxAttempts, dead, q.MaxAttempts-1)
	case q.Type == spec.Quorum:
		return fmt.Sprintf("%d, the first delivery counted. The server dead-letters a spent message (x-delivery-limit %d), whether rsctl runs or not: it %s.", q.MaxAttempts, q.MaxAttempts-1, dead)
	}
	return fmt.Sprintf("%d, the first delivery counted. A copy of a spent message %s, with the reason in its headers.", q.MaxAttempts, dead)
}

func dropNote(q *spec.Queue) string {
	pair := q.Type == spec.Quorum && q.MaxAttempts > 0 && q.DeadLetter != ""
	switch {
	case pair:
		return fmt.Sprintf("a dropped message goes to %q, the queue's dead-letter route.", q.DeadLetter)
	case q.DeadLetterExchange == nil:
		return "a dropped message is discarded, unless a policy on the broker gives the queue a dead-letter exchange."
	}
	route := fmt.Sprintf("a dropped or expired message goes to the exchange %q", *q.DeadLetterExchange)
	if q.DeadLetterRoutingKey != nil {
		route += fmt.Sprintf(" with routing key %q", *q.DeadLetterRoutingKey)
	}
	if q.Type == spec.Classic && q.MaxAttempts > 0 && q.RetryOriginal == spec.RejectOriginal {
		return route + `; so does the original of every retry ("retry_original: ack" avoids that).`
	}
	return route + "."
}

// delayNotes says where a copy waits, by strategy.
var delayNotes = map[string]string{
	"timer":      "a delayed retry waits in this process: the original is rejected, a graceful stop waits for the timer, a crash loses the copy.",
	"hold":       "a delayed retry stays unsettled in this process, in a prefetch slot; a crash requeues it. The server's consumer timeout is the longest delay.",
	"dlx_ttl":    "a delayed retry waits on the broker in a waiting queue, with the delay as its expiration, and comes back through the default exchange. A short delay waits behind a long one in the same waiting queue.",
	"plugin_dme": "a delayed retry waits in an exchange of the delayed-message plugin; it lives on one node and is lost with it.",
	"levels":     "a delayed retry waits on the broker in a shared ladder of waiting queues, one for each power of two in seconds. Delays are rounded up to whole seconds.",
	"native":     "a retry waits in the queue itself, by the server's own linear back-off (RabbitMQ 4.3 or later); the delay that a handler asks for is not used.",
}

const tiersNote = "a delayed retry waits on the broker, in the waiting queue of the shortest tier that is long enough, and comes back through the default exchange. Short delays never wait behind long ones."

func delayNote(q *spec.Queue, p settle.Policy) string {
	switch {
	case q.Delay == nil && q.Type == spec.Quorum:
		return "none: retry_after requeues at once and logs a warning that the delay was dropped."
	case q.Delay == nil:
		return delayNotes["timer"]
	}
	text := q.Delay.Strategy + ": " + delayNotes[q.Delay.Strategy]
	if len(q.Delay.Tiers) > 0 {
		text = q.Delay.Strategy + ": " + tiersNote
	}
	if p.Delay != nil && p.Delay.Max > 0 {
		text += fmt.Sprintf(" The longest is %s.", short(p.Delay.Max))
	}
	return text
}

// backoffShown is how many delays of a backoff are spelled out.
const backoffShown = 6

func backoffNote(q *spec.Queue, b settle.Backoff) string {
	waits := backoffShown + 1
	if q.MaxAttempts > 0 {
		waits = q.MaxAttempts - 1
	}
	var delays []string
	for n := 1; n <= min(waits, backoffShown); n++ {
		delays = append(delays, short(b.After(n, 0)))
	}
	if len(delays) == 0 {
		return "of no use with one attempt: nothing is ever retried."
	}
	text := "a plain retry waits " + strings.Join(delays, ", then ")
	if waits > backoffShown {
		text += " and so on"
		if b.Max > 0 {
			text += ", at most " + short(b.Max)
		}
	}
	if b.Jitter > 0 {
		text += fmt.Sprintf("; up to %g%% longer by chance", b.Jitter*100)
	}
	return text + "."
}

func outageNote(q *spec.Queue) string {
	d, capped := topology.OutageBudget(q)
	switch {
	case q.Handler == nil, !capped:
		return ""
	case d == 0:
		return "the spec sets no delay for a plain retry, so a message can be spent as fast as its handler fails. " + unavailableNote(q)
	}
	return fmt.Sprintf("a handler may fail for about %s before the first message is spent. ", short(d)) + unavailableNote(q)
}

func unavailableNote(q *spec.Queue) string {
	if q.Handler.OnUnavailable == "retry" {
		return "A handler that cannot be started, or whose host cannot be reached, spends attempts like one that fails."
	}
	return "A handler that cannot be started, or whose host cannot be reached, spends no attempts."
}

// waitsAsCopy reports whether a delayed retry is a copy on the broker.
func waitsAsCopy(p settle.Policy) bool { return p.Delay != nil && p.Delay.Mode == settle.ModeCopy }

func expirationNote(q *spec.Queue, p settle.Policy) string {
	plainCopies := q.Type == spec.Classic && q.MaxAttempts > 0
	var parts []string
	switch {
	case waitsAsCopy(p) && q.Backoff != nil: // there are no plain retries
	case plainCopies:
		parts = append(parts, "a producer's own expiration stays on a plain retry copy, where it starts anew")
	default:
		parts = append(parts, "a producer's own expiration goes on running through a plain retry, which is a requeue")
	}
	if waitsAsCopy(p) {
		parts = append(parts, "on a waiting copy the delay replaces a producer's own expiration, which is kept in x-rsctl-expiration and put back on the next copy that can carry it")
	}
	if q.Type == spec.Classic && !plainCopies && !waitsAsCopy(p) {
		parts = append(parts, "it starts anew on a delayed copy")
	}
	if q.Type == spec.Classic && q.MaxAttempts > 0 && q.DeadLetter != "" {
		parts = append(parts, "it is removed on the way to the dead-letter queue")
	}
	return strings.Join(parts, "; ") + "."
}

func crashNote(q *spec.Queue) string {
	switch {
	case q.Type == spec.Classic:
		return "a crash of rsctl or of its connection while a handler runs is not counted: the message comes back, marked redelivered, with the same attempt number. A message that crashes its consumer is tried for ever; a quorum queue is recommended for such poison messages, because there the server counts."
	case q.MaxAttempts > 0:
		return "the server counts a delivery that a crash of rsctl or of its connection ends, so a message that crashes its consumer is dead-lettered too. A crash between a handler's end and its settlement runs the handler again. " + neighboursNote(q)
	}
	return "the server counts a delivery that a crash of rsctl or of its connection ends. A crash between a handler's end and its settlement runs the handler again."
}

// neighboursNote says what a message that kills its process costs the others.
func neighboursNote(q *spec.Queue) string {
	switch {
	case q.Prefetch == 1:
		return "With a prefetch of 1 no other message loses an attempt with it."
	case q.Consumer.SingleActive:
		return fmt.Sprintf("Up to %d other messages that are prefetched lose an attempt with it, each time: with a single active consumer they cannot run one at a time afterwards.", q.Prefetch-1)
	}
	return fmt.Sprintf("Up to %d other messages that are prefetched lose an attempt with it, once: what comes back then runs one at a time.", q.Prefetch-1)
}

func handlerNote(s *spec.Spec, q *spec.Queue) string {
	h := q.Handler
	atOnce, processes := q.Concurrency, ""
	if h.Kind == spec.Worker {
		n := cmp.Or(h.Processes, q.Concurrency)
		atOnce = min(atOnce, n*max(h.Pipeline, 1))
		processes = fmt.Sprintf("; processes are started when needed and kept, at most %d, each with up to %d in flight", n, max(h.Pipeline, 1))
	}
	limits := fmt.Sprintf("%s; timeout %s, %d at a time, prefetch %d.", processes, short(h.Timeout), atOnce, q.Prefetch)
	if h.Reply {
		limits += " What it answers with an ack goes to the request's reply_to, where that is direct reply-to, " +
			strings.Join(append([]string{"amq.gen-*"}, h.ReplyTo...), ", ") + "; no other address gets a reply."
	}
	if h.NoKeepAlive {
		limits += " Each request has a connection of its own."
	}
	if q.MaxBody > 0 {
		limits += fmt.Sprintf(" It gets no body over %s.", spec.FormatSize(q.MaxBody))
	}
	switch {
	case h.InheritOnly == nil:
	case len(h.InheritOnly) == 0:
		limits += " Of rsctl's environment it gets nothing."
	default:
		limits += " Of rsctl's environment it gets " + strings.Join(h.InheritOnly, ", ") + "."
	}
	if h.Kind == spec.HTTP {
		return "POST " + h.URL.String() + limits
	}
	words := []string{commandPath(s.Dir, h.Command[0])}
	for _, arg := range h.Command[1:] {
		words = append(words, shown(arg))
	}
	return fmt.Sprintf("%s %s, in %s%s", h.Kind, strings.Join(words, " "), h.Dir, limits)
}

func batchNote(q *spec.Queue) string {
	return fmt.Sprintf("one handler call for up to %d messages, or for what has come within %s of the first. Each is settled on its own, by its own outcome or by one for all; an answer of another length is a failed attempt of each.", q.Batch.Size, short(q.Batch.Wait))
}

// orderKeys names what an ordered queue goes by.
var orderKeys = map[string]string{
	"routing_key":    "the routing key of the first delivery",
	"correlation_id": "correlation_id",
}

func orderNote(q *spec.Queue) string {
	key := "the header " + q.OrderedBy.Header
	if text, ok := orderKeys[q.OrderedBy.By]; ok {
		key = text
	}
	turn := "run one at a time, in order"
	if q.Batch != nil {
		turn = "are in one batch at a time, in order"
	}
	text := fmt.Sprintf("messages that share %s %s; those without it run in any order. A retried message comes back later: the next of its key does not wait for it.", key, turn)
	if q.Consumer.SingleActive || q.Consumer.Exclusive {
		return text
	}
	return text + ` It holds within one process: with more than one, set "consumer: {single_active: true}".`
}

// commandPath is the absolute path of a command; one that holds a value from
// the environment is shown as written.
func commandPath(dir string, command spec.Text) string {
	switch {
	case command.Value != command.Source:
		return shown(command)
	case filepath.IsAbs(command.Value):
	case strings.ContainsRune(command.Value, '/'):
		return filepath.Join(dir, command.Value)
	default:
		if path, err := exec.LookPath(command.Value); err == nil {
			return path
		}
		return command.Value + " (not on PATH)"
	}
	return command.Value
}

// shown quotes a word that a shell would split.
func shown(t spec.Text) string {
	if t.Source == "" || strings.ContainsAny(t.Source, " \t\n\"'") {
		return quote(t.Source)
	}
	return t.Source
}
