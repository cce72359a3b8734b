package message

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/rsctl/rsctl/pkg/hooks"
	"github.com/rsctl/rsctl/pkg/spec"
)

// ParseAnswer reads one answer line: "ack", "drop", "retry" or "retry_after
// DELAY", each optionally followed by a reason. Anything else is an error, and
// an answer that cannot be read must never acknowledge a message.
func ParseAnswer(line string) (hooks.Outcome, error) {
	word, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
	verdict, known := verdicts[word]
	if !known {
		return hooks.Outcome{}, fmt.Errorf("%q is none of ack, drop, retry, retry_after", Printable(word, 64))
	}
	o := hooks.Outcome{Verdict: verdict}
	if verdict == hooks.RetryAfter {
		delay, reason, _ := strings.Cut(strings.TrimSpace(rest), " ")
		d, err := parseDelay(delay)
		if err != nil {
			return hooks.Outcome{}, err
		}
		o.Delay, rest = d, reason
	}
	o.Reason = Printable(strings.TrimSpace(rest), MaxReason)
	return o, nil
}

// parseDelay reads a duration as a spec writes it: "500ms", "30s", "1h30m",
// "7d". Unlike in a spec it may be negative, which is a plain retry.
func parseDelay(s string) (time.Duration, error) {
	if s == "" {
		return 0, errors.New("retry_after needs a delay, such as retry_after 30s")
	}
	digits, negative := strings.CutPrefix(s, "-")
	d, err := spec.ParseDuration(digits)
	if err != nil {
		return 0, fmt.Errorf("delay %q is not a duration such as 30s: %w", Printable(s, 64), err)
	}
	if negative {
		return -d, nil
	}
	return d, nil
}

// ByRule returns the outcome that a spec's rules give to code, and whether one
// does. The first matching rule decides.
func ByRule(rules []spec.CodeRule, code int) (hooks.Outcome, bool) {
	for _, r := range rules {
		if r.From <= code && code <= r.To {
			return hooks.Outcome{Verdict: verdicts[r.Outcome.Kind], Delay: r.Outcome.Delay}, true
		}
	}
	return hooks.Outcome{}, false
}

// verdicts maps the words of a spec and of a hook; an unknown word is a failure.
var verdicts = map[string]hooks.Verdict{
	"ack":         hooks.Ack,
	"drop":        hooks.Drop,
	"retry":       hooks.Retry,
	"retry_after": hooks.RetryAfter,
}
