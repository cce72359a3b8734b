package spec

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// handlerDecoder reads a handler.
type handlerDecoder struct{ *decoder }

func (d *handlerDecoder) handler(n *node) *Handler {
	if n == nil || n.kind != mapping {
		return nil
	}
	f := d.fields(n)
	h := &Handler{
		Pos:           n.pos,
		Timeout:       f.duration("timeout", 30*time.Second),
		OnUnavailable: f.text("on_unavailable"),
	}
	h.Reply, h.ReplyTo = d.reply(f)
	if h.OnUnavailable == "" {
		h.OnUnavailable = "pause"
	}
	h.Kind = d.kind(n)
	switch h.Kind {
	case Exec, Worker:
		d.process(h, f)
	case HTTP:
		d.http(h, f)
	}
	return h
}

// reply returns whether answers are published, and the patterns of the addresses
// that may get them beside those that the server makes.
func (d *handlerDecoder) reply(f fields) (bool, []string) {
	n := f.n.get("reply")
	if n == nil || n.kind != mapping {
		return f.boolean("reply", false), nil
	}
	var to []string
	for _, item := range list(n.get("to")) {
		if item.kind == scalar && d.shortText(item) {
			to = append(to, item.value)
		}
	}
	return true, to
}

// kind returns the one kind of a handler, or "" with a problem reported.
func (d *handlerDecoder) kind(n *node) HandlerKind {
	var found []string
	for _, k := range []HandlerKind{Exec, Worker, HTTP} {
		if n.get(string(k)) != nil {
			found = append(found, string(k))
		}
	}
	const hint = "a handler has exactly one of exec, worker and http"
	switch {
	case len(found) == 1:
		return HandlerKind(found[0])
	case len(found) > 1:
		d.refuse(n, "handler-kind", "handler has "+strings.Join(found, " and "), hint)
	case !n.broken:
		d.refuse(n, "handler-kind", "handler has no exec, worker or http", hint)
	}
	return ""
}

func (d *handlerDecoder) process(h *Handler, f fields) {
	h.Command = d.command(f.n.get(string(h.Kind)))
	h.Dir = f.options.Dir
	if dir := f.path("dir"); dir != "" {
		h.Dir = dir
	}
	h.Env = d.pairs(f.n.get("env"), "RSCTL_")
	h.InheritOnly = f.inheritOnly("inherit_env")
	h.KillGrace = f.delay("kill_grace", 5*time.Second)
	h.ExitCodes = d.codes(f.n.get("exit_codes"), 0, 255)
	if h.Kind == Worker {
		h.Processes = f.integer("processes", 0)
		h.Pipeline = f.integer("pipeline", 1)
	}
}

// inheritOnly reads a list of variables, or a bool: true is nil, which is all.
func (f fields) inheritOnly(key string) []string {
	n := f.n.get(key)
	if n == nil || n.broken || n.kind != sequence && f.boolean(key, true) {
		return nil
	}
	names := []string{}
	for _, item := range list(n) {
		if !item.broken && item.kind == scalar {
			names = append(names, item.value)
		}
	}
	return names
}

// command reads program and arguments. No shell will split them, so one item
// that looks like a command line is the commonest mistake.
func (d *handlerDecoder) command(n *node) []Text {
	var out []Text
	for _, item := range list(n) {
		if item.broken || item.kind != scalar {
			continue
		}
		if strings.ContainsRune(item.value, 0) {
			d.refuse(item, "handler-command", item.label+" must not hold a zero byte", "")
		}
		out = append(out, plainText(item))
	}
	if len(out) == 0 {
		return out
	}
	switch first := n.items[0]; {
	case first.broken:
	case strings.TrimSpace(first.value) == "":
		d.refuse(first, "handler-command", first.label+" must name a program", "")
	case len(n.items) == 1 && strings.Contains(strings.TrimSpace(first.value), " "):
		d.refuse(first, "handler-command", fmt.Sprintf("%s is one item with spaces in it: %s", n.label, first.shown()),
			"no shell splits it; write the program and each argument as items of their own: "+splitHint(first))
	}
	return out
}

func splitHint(n *node) string {
	if n.interpolated() || strings.ContainsAny(n.text, "'\"\\") {
		return `["program", "argument"]`
	}
	words := strings.Fields(n.text)
	if len(words) > 4 {
		words = append(words[:4], "…")
	}
	for i, w := range words {
		words[i] = quoteShort(w)
	}
	return "[" + strings.Join(words, ", ") + "]"
}

func (d *handlerDecoder) http(h *Handler, f fields) {
	h.URL = d.endpoint(f.scalar("http"))
	h.Headers = d.pairs(f.n.get("headers"), "rsctl-")
	h.Statuses = d.codes(f.n.get("statuses"), 200, 599)
	h.MaxRetryAfter = f.duration("max_retry_after", time.Hour)
	h.NoKeepAlive = !f.boolean("keep_alive", true)
	h.TLS = d.tls(f.n.get("tls"))
	h.Secrets = d.secrets(f.n.get("secret"))
	if len(h.Secrets) > 0 {
		h.Secret = &h.Secrets[0]
	}
}

func (d *handlerDecoder) secrets(n *node) []Text {
	if n == nil {
		return nil
	}
	items := n.items
	if n.kind == scalar {
		items = []*node{n}
	}
	var out []Text
	for _, item := range items {
		if !item.broken && item.kind == scalar {
			out = append(out, secretText(item))
		}
	}
	return out
}

// pairs reads environment variables or headers, in the order they are written.
// Names with the prefix are set by rsctl itself.
func (d *handlerDecoder) pairs(n *node, prefix string) []EnvVar {
	if n == nil {
		return nil
	}
	var out []EnvVar
	for _, e := range n.entries {
		switch v := e.value; {
		case v.broken || v.kind != scalar:
			continue
		case strings.HasPrefix(strings.ToLower(e.key), strings.ToLower(prefix)):
			d.refuse(v, "reserved-name", fmt.Sprintf("%s: %s is set by rsctl itself", n.label, e.key), "choose another name")
		case strings.ContainsAny(v.value, "\x00\r\n") && prefix == "rsctl-", strings.ContainsRune(v.value, 0):
			d.refuse(v, "value", fmt.Sprintf("%s: the value of %s must not hold line breaks or zero bytes", n.label, e.key), "")
		case namesSecret(e.key):
			out = append(out, EnvVar{Name: e.key, Value: secretText(v)})
		default:
			out = append(out, EnvVar{Name: e.key, Value: plainText(v)})
		}
	}
	return out
}

// codes reads a table of exit codes or statuses. Two entries must not say
// different things about one code.
func (d *handlerDecoder) codes(n *node, low, high int) []CodeRule {
	if n == nil {
		return nil
	}
	var out []CodeRule
	for _, e := range n.entries {
		if e.value.broken || e.value.kind != scalar {
			continue
		}
		rule, ok := d.code(n, e, [2]int{low, high})
		if !ok {
			continue
		}
		if twin := overlapping(out, rule); twin != nil {
			d.refuse(e.value, "codes", fmt.Sprintf("%s: %s overlaps with %s", n.label, e.key, twin), "say what each code means once")
			continue
		}
		out = append(out, rule)
	}
	return out
}

func overlapping(rules []CodeRule, r CodeRule) *CodeRule {
	for i := range rules {
		if r.From <= rules[i].To && rules[i].From <= r.To {
			return &rules[i]
		}
	}
	return nil
}

// String returns the codes as a spec writes them: 3 or 10-19.
func (r *CodeRule) String() string {
	if r.From == r.To {
		return strconv.Itoa(r.From)
	}
	return fmt.Sprintf("%d-%d", r.From, r.To)
}

func (d *handlerDecoder) code(n *node, e entry, limits [2]int) (CodeRule, bool) {
	from, to, ranged := strings.Cut(e.key, "-")
	if !ranged {
		to = from
	}
	a, errA := strconv.Atoi(from)
	b, errB := strconv.Atoi(to)
	if errA != nil || errB != nil || a > b || a < limits[0] || b > limits[1] {
		e.value.spoil()
		d.err(e.pos, "codes", fmt.Sprintf("%s: %s is not within %d to %d", n.label, e.key, limits[0], limits[1]),
			"write one code, or a range from the lower to the higher")
		return CodeRule{}, false
	}
	outcome, ok := d.outcome(e.value)
	return CodeRule{From: a, To: b, Outcome: outcome}, ok
}

func (d *handlerDecoder) outcome(n *node) (Outcome, bool) {
	kind, delay, found := strings.Cut(n.value, " ")
	if !found {
		return Outcome{Kind: kind}, true
	}
	dur, err := ParseDuration(strings.TrimSpace(delay))
	if err != nil {
		message := fmt.Sprintf("%s: retry_after needs a duration", n.label)
		if !n.inserted {
			message += fmt.Sprintf(", got %s: %s", quoteShort(delay), err)
		}
		d.refuse(n, "duration", message, "units are "+durationUnits)
		return Outcome{}, false
	}
	return Outcome{Kind: kind, Delay: dur}, true
}
