package http

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"

	"github.com/rsctl/rsctl/pkg/hooks"
	"github.com/rsctl/rsctl/pkg/hooks/http/internal/exchange"
	"github.com/rsctl/rsctl/pkg/hooks/internal/message"
)

// batchType is the content type of a batch, unless the spec sets one.
const batchType = "application/vnd.rsctl.batch+json"

// HandleBatch implements [hooks.BatchHook]: the messages are one request, a JSON
// array of what a worker gets as one message of a batch.
func (e *endpoint) HandleBatch(ctx context.Context, ms []hooks.Message) ([]hooks.Outcome, error) {
	if ctx.Err() != nil {
		return message.ForAll(hooks.Outcome{Reason: message.StopReason(ctx, e.h.Timeout)}, len(ms)), nil
	}
	res, err := e.sendBatch(ctx, ms)
	if err != nil {
		o, err := e.failure(ctx, err)
		if err != nil {
			return nil, err
		}
		return message.ForAll(o, len(ms)), nil
	}
	defer res.Close()
	if err := e.proxySays(res.Response); err != nil {
		return nil, err
	}
	each := e.batchOutcomes(res.Response, len(ms))
	for i, o := range each {
		each[i] = trusted(ctx, &res, o)
	}
	if ctx.Err() != nil { // as for one message, with a body that has to be read
		return message.ForAll(hooks.Outcome{Reason: message.StopReason(ctx, e.h.Timeout)}, len(ms)), nil
	}
	return each, nil
}

func (e *endpoint) sendBatch(ctx context.Context, ms []hooks.Message) (exchange.Answer, error) {
	body := append(make([]byte, 0, message.BatchSize(ms)), '[')
	body = append(message.AppendMessages(body, ms, ','), ']')
	return e.post(ctx, e.batchFields(ms), body, func() string { return batchID(ms) })
}

// batchFields returns the headers of the request for ms: what is the same for
// all of them.
func (e *endpoint) batchFields(ms []hooks.Message) []exchange.Field {
	s := headerSet{fields: make([]exchange.Field, 0, len(e.fixed)+8)}
	s.fields = append(s.fields, e.fixed...)
	contentType := batchType
	if e.contentType != "" {
		contentType = e.contentType
	}
	s.fields = append(s.fields, exchange.Field{Name: "Content-Type", Value: contentType})
	s.put("RSCTL-Queue", ms[0].Queue)
	s.put("RSCTL-Max-Attempts", strconv.Itoa(ms[0].MaxAttempts))
	s.put("RSCTL-Batch-Size", strconv.Itoa(len(ms)))
	parent, state := message.TraceOfAll(ms)
	s.trace(e.fixed, parent, state)
	return s.fields
}

// batchID is the webhook id of a batch: the same whenever the same messages come
// in the same order, on whatever attempt.
func batchID(ms []hooks.Message) string {
	h := sha256.New()
	for i := range ms {
		io.WriteString(h, webhookID(&ms[i])+"\n") // no id has a line break; a hash takes everything
	}
	return "batch_" + hex.EncodeToString(h.Sum(nil)[:16])
}

// batchOutcomes reads the answer to a batch of n messages. The status speaks for
// all of them, by the rules for one; but success may come with one outcome per
// message in the body.
func (e *endpoint) batchOutcomes(res *http.Response, n int) []hooks.Outcome {
	if e.bodyDecides(res) {
		answer, ok, err := readBatchAnswer(res)
		switch {
		case err != nil:
			return message.ForAll(hooks.Outcome{Reason: message.JoinReason("malformed answer", err.Error())}, n)
		case ok:
			return message.BatchAnswer(answer, n)
		}
		return message.ForAll(hooks.Outcome{Verdict: hooks.Ack}, n)
	}
	return message.ForAll(e.explained(res, e.outcome(res)), n)
}

// bodyDecides reports whether nothing but its status tells that res is a success.
func (e *endpoint) bodyDecides(res *http.Response) bool {
	_, ruled := message.ByRule(e.h.Statuses, res.StatusCode)
	return res.StatusCode >= 200 && res.StatusCode <= 299 && !ruled && len(res.Header[outcomeHeader]) == 0
}

// readBatchAnswer returns a body that is meant as an answer: one that begins like
// a JSON object or array, whatever its content type says, because frameworks
// guess that. A body that might have become one is an error, for an answer that
// cannot be read must never ack.
func readBatchAnswer(res *http.Response) (answer []byte, ok bool, err error) {
	body, err := io.ReadAll(io.LimitReader(res.Body, message.MaxBatchAnswer+1))
	long := len(body) > message.MaxBatchAnswer
	body = bytes.TrimSpace(bytes.TrimPrefix(body, []byte("\ufeff")))
	encoding := strings.ToLower(res.Header.Get("Content-Encoding"))
	switch {
	case err != nil:
		return nil, false, fmt.Errorf("the body broke off: %s", describeTransport(err))
	case len(body) > 0 && encoding != "" && encoding != "identity":
		return nil, false, fmt.Errorf("the body is encoded as %s, which was not asked for", message.Printable(encoding, 64))
	case len(body) > 0 && body[0] != '{' && body[0] != '[':
		return nil, false, nil
	case long:
		return nil, false, fmt.Errorf("the body is longer than %d bytes", message.MaxBatchAnswer)
	}
	return body, len(body) > 0, nil
}
