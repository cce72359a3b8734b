package cli

import (
	"errors"
	"fmt"
	"unicode/utf8"

	"github.com/rsctl/rsctl/pkg/hooks"
	"github.com/rsctl/rsctl/pkg/settle"
	"github.com/rsctl/rsctl/pkg/spec"
)

// tryJSON is the form of "try --output json". Without an outcome, error says why
// the handler could not be run.
type tryJSON struct {
	Queue       string       `json:"queue"`
	Attempt     int          `json:"attempt"`
	MaxAttempts int          `json:"max_attempts"` // 0: no cap
	Output      []outputLine `json:"output"`
	Outcome     string       `json:"outcome,omitempty"`
	Failed      bool         `json:"failed"` // the handler gave no readable answer
	Delay       string       `json:"delay,omitempty"`
	Reason      string       `json:"reason,omitempty"`
	Reply       []byte       `json:"reply_base64,omitempty"`
	Next        string       `json:"next,omitempty"`
	Steps       []string     `json:"steps,omitempty"`
	Error       string       `json:"error,omitempty"`
}

func (a *app) printTrial(t trial, r result) error {
	err := unrunnable(t.queue, r.err)
	doc := t.doc(r)
	doc.Error = errorText(err)
	switch {
	case a.output.value == "json":
		return errors.Join(err, a.json(doc))
	case err == nil:
		printTried(a.stdout(), doc)
	}
	return err
}

// unrunnable makes a hook that could not be run the answer no.
func unrunnable(q *spec.Queue, err error) error {
	var interrupted *failure
	if err == nil || errors.As(err, &interrupted) {
		return err
	}
	return &negative{fmt.Sprintf("the handler of queue %q could not be run: %v", q.Name, err), ""}
}

func (t trial) doc(r result) tryJSON {
	doc := tryJSON{Queue: t.queue.Name, Attempt: t.facts.Attempt, MaxAttempts: t.queue.MaxAttempts, Output: r.output}
	if doc.Output == nil {
		doc.Output = []outputLine{}
	}
	if r.err != nil {
		return doc
	}
	o := r.outcome
	doc.Outcome, doc.Failed, doc.Reason = o.Verdict.String(), o.Verdict == hooks.Failed, o.Reason
	if o.Verdict == hooks.RetryAfter {
		doc.Delay = spec.FormatDuration(o.Delay)
	}
	if t.queue.Handler.Reply && o.Verdict == hooks.Ack {
		doc.Reply = o.Reply
	}
	steps := settle.Decide(t.facts, o, t.policy)
	for _, s := range steps {
		doc.Steps = append(doc.Steps, settle.Describe(s))
	}
	doc.Next = settle.Consequence(t.facts, steps, t.policy)
	return doc
}

// printTried writes the answer and what becomes of the message, one step a line.
func printTried(c console, doc tryJSON) {
	outcome := doc.Outcome
	if doc.Delay != "" {
		outcome += " " + doc.Delay
	}
	if doc.Failed {
		outcome += ", because the handler failed"
	}
	attempt := itoa(doc.Attempt)
	if doc.MaxAttempts > 0 {
		attempt += " of " + itoa(doc.MaxAttempts)
	}
	notes := []note{{"outcome", outcome}}
	if doc.Reason != "" {
		notes = append(notes, note{"reason", doc.Reason})
	}
	if len(doc.Reply) > 0 {
		notes = append(notes, note{"reply", replyText(doc.Reply)})
	}
	notes = append(notes, note{"attempt", attempt}, note{"message", doc.Next})
	for i, step := range doc.Steps {
		subject := "then"
		if i == 0 {
			subject = "on the wire"
		}
		notes = append(notes, note{subject, step})
	}
	printNotes(c, notes)
}

// replyText shows a reply that is text, and only the size of any other.
func replyText(reply []byte) string {
	if !utf8.Valid(reply) {
		return plural(len(reply), "byte") + " that are not text"
	}
	return string(reply)
}
