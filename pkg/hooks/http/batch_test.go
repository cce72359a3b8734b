package http

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rsctl/rsctl/pkg/hooks"
	"github.com/rsctl/rsctl/pkg/hooks/http/internal/exchange"
	"github.com/rsctl/rsctl/pkg/hooks/internal/hooktest"
	"github.com/rsctl/rsctl/pkg/hooks/internal/message"
	"github.com/rsctl/rsctl/pkg/hooks/setup"
	"github.com/rsctl/rsctl/pkg/spec"
	"github.com/rsctl/rsctl/schema"
)

// captureBatch posts ms and returns what arrived, which must be one request.
func captureBatch(t *testing.T, ms []hooks.Message, edit func(h *spec.Handler)) received {
	t.Helper()
	h, only := recording(t, edit)
	hooktest.WantOutcomes(t, hooktest.HandleBatch(t, newHook(t, h, setup.Options{}), ms), message.ForAll(hooks.Outcome{Verdict: hooks.Ack}, len(ms)))
	return only()
}

func TestHTTPBatchRequest(t *testing.T) {
	t.Parallel()
	r := captureBatch(t, hooktest.Three(), nil)
	wantHeaders(t, r, map[string]string{
		"Content-Type": "application/vnd.rsctl.batch+json", "User-Agent": "rsctl",
		"RSCTL-Queue": "rows", "RSCTL-Max-Attempts": "5", "RSCTL-Batch-Size": "3",
	})
	for name := range r.Header {
		if own := strings.HasPrefix(name, "Rsctl-"); own && !slices.Contains([]string{"Rsctl-Queue", "Rsctl-Max-Attempts", "Rsctl-Batch-Size"}, name) {
			t.Errorf("%s was sent, which is not the same for all", name)
		}
	}
	if err := hooktest.Validator(t, schema.WorkerRequest)([]byte(`{"id":"1","messages":` + r.body + `}`)); err != nil {
		t.Errorf("%s: %v", r.body, err)
	}
	for _, want := range []string{`[{"body":"one\n\"two\"","queue":"rows",`, `,{"body_base64":"/wA=","queue":"rows",`, `"attempt":2,"max_attempts":5,"redelivered":true,"message_id":"b"`} {
		if !strings.Contains(r.body, want) {
			t.Errorf("the body %s does not contain %s", r.body, want)
		}
	}
}

func TestHTTPBatchHeadersOfTheSpec(t *testing.T) {
	t.Parallel()
	r := captureBatch(t, hooktest.Three(), func(h *spec.Handler) {
		h.Headers = []spec.EnvVar{{Name: "Content-Type", Value: spec.Text{Value: "application/json"}}, {Name: "X-Token", Value: spec.Text{Value: "t"}}}
	})
	wantHeaders(t, r, map[string]string{"Content-Type": "application/json", "X-Token": "t"})
}

func TestHTTPBatchLargerThanASmallRequest(t *testing.T) {
	t.Parallel()
	for _, size := range []int{exchange.MaxSmallBody / 2, exchange.MaxSmallBody * 2, 1 << 20} {
		ms := []hooks.Message{{Queue: "rows", Body: bytes.Repeat([]byte("x"), size)}, {Queue: "rows", Body: []byte{0xff}}}
		if r := captureBatch(t, ms, signed(newSecret)); r.body != "["+string(message.AppendMessages(nil, ms, ','))+"]" || !verified(t, newSecret, r.body, r.Header) {
			t.Errorf("a batch of %d bytes arrived as %d, or is not verified", size, len(r.body))
		}
	}
}

func TestSignature_OfABatchIsVerified(t *testing.T) {
	t.Parallel()
	first := hooktest.Three()
	r := captureBatch(t, first, signed(newSecret, oldSecret))
	if !verified(t, newSecret, r.body, r.Header) || !verified(t, oldSecret, r.body, r.Header) || verified(t, otherSecret, r.body, r.Header) || verified(t, newSecret, r.body+" ", r.Header) {
		t.Errorf("the library does not verify exactly what was signed: %v", r.Header)
	}
	id := r.Header.Get("Webhook-Id")
	if !strings.HasPrefix(id, "batch_") || len(id) != 38 || id != batchID(first) {
		t.Errorf("webhook id %q", id)
	}
	again := hooktest.Three()
	for i := range again {
		again[i].Attempt, again[i].Redelivered, again[i].Headers = 4, true, map[string]any{"x-ruststream-retry-count": "3"}
	}
	if batchID(again) != id {
		t.Error("another attempt of the same messages has another id")
	}
	swapped := hooktest.Three()
	swapped[0], swapped[1] = swapped[1], swapped[0]
	for name, other := range map[string][]hooks.Message{
		"another order": swapped, "fewer messages": hooktest.Three()[:2], "none of them": {{MessageID: "d"}},
		"ids that join to the same text": {{MessageID: "a\nb"}, {MessageID: "c"}},
	} {
		if batchID(other) == id {
			t.Errorf("%s has the same id", name)
		}
	}
}

func TestHTTPBatchStatusHoldsForAll(t *testing.T) {
	t.Parallel()
	rules := []spec.CodeRule{
		{From: 409, To: 409, Outcome: spec.Outcome{Kind: "ack"}},
		{From: 202, To: 202, Outcome: spec.Outcome{Kind: "retry"}},
		{From: 203, To: 203, Outcome: spec.Outcome{Kind: "ack"}},
	}
	for _, tt := range []struct {
		name, answer string
		want         hooks.Outcome
	}{
		{"204 acks", "204 No Content\r\n", hooks.Outcome{Verdict: hooks.Ack}},
		{"a text that is no JSON object goes by the status", "200 OK\r\nContent-Length: 2\r\n\r\nOK", hooks.Outcome{Verdict: hooks.Ack}},
		{"null in JSON goes by the status", "200 OK\r\nContent-Type: application/json\r\nContent-Length: 4\r\n\r\nnull", hooks.Outcome{Verdict: hooks.Ack}},
		{"422 drops", "422 Unprocessable Entity\r\nContent-Length: 7\r\n\r\nno rows", hooks.Outcome{Verdict: hooks.Drop, Reason: "HTTP 422 Unprocessable Entity: no rows"}},
		{"outcomes do not change a failure", "422 Unprocessable Entity\r\nContent-Length: 17\r\n\r\n{\"outcome\":\"ack\"}", hooks.Outcome{Verdict: hooks.Drop, Reason: `HTTP 422 Unprocessable Entity: {"outcome":"ack"}`}},
		{"500 retries", "500 Internal Server Error\r\nContent-Length: 0\r\n", hooks.Outcome{Verdict: hooks.Retry, Reason: "HTTP 500 Internal Server Error"}},
		{"503 with Retry-After", "503 Service Unavailable\r\nRetry-After: 7\r\nContent-Length: 0\r\n", hooks.Outcome{Verdict: hooks.RetryAfter, Delay: 7 * time.Second, Reason: "HTTP 503 Service Unavailable"}},
		{"a redirect is not followed", "307 Temporary Redirect\r\nLocation: /other\r\nContent-Length: 0\r\n", hooks.Outcome{Reason: `HTTP 307 Temporary Redirect to "/other"; redirects are not followed, change the URL of the handler`}},
		{"a status of the spec", "409 Conflict\r\nContent-Length: 0\r\n", hooks.Outcome{Verdict: hooks.Ack}},
		{"a status of the spec that is a success", "202 Accepted\r\nContent-Length: 0\r\n", hooks.Outcome{Verdict: hooks.Retry, Reason: "HTTP 202 Accepted"}},
		{"a status of the spec comes before the body", "203 Fine\r\nContent-Length: 18\r\n\r\n{\"outcome\":\"drop\"}", hooks.Outcome{Verdict: hooks.Ack}},
		{"RSCTL-Outcome comes before the body", "200 OK\r\nRSCTL-Outcome: retry_after 30s busy\r\nContent-Length: 17\r\n\r\n{\"outcome\":\"ack\"}", hooks.Outcome{Verdict: hooks.RetryAfter, Delay: 30 * time.Second, Reason: "busy"}},
		{"a malformed RSCTL-Outcome fails", "200 OK\r\nRSCTL-Outcome: fine\r\nContent-Length: 0\r\n", hooks.Outcome{Reason: `malformed RSCTL-Outcome: "fine" is none of ack, drop, retry, retry_after`}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if !strings.Contains(tt.answer, "\r\n\r\n") {
				tt.answer += "\r\n"
			}
			h := httpHandler(serveRaw(t, "HTTP/1.1 "+tt.answer))
			h.Statuses = rules
			hooktest.WantOutcomes(t, hooktest.HandleBatch(t, newHook(t, h, setup.Options{}), hooktest.Three()), message.ForAll(tt.want, 3))
		})
	}
}

func malformedBody(why string) []hooks.Outcome {
	return message.ForAll(hooks.Outcome{Reason: "malformed answer: " + why}, 3)
}

func TestHTTPBatchBodyHoldsForEach(t *testing.T) {
	t.Parallel()
	mixed := []hooks.Outcome{{Verdict: hooks.Ack}, {Verdict: hooks.Drop, Reason: "no"}, {Verdict: hooks.RetryAfter, Delay: time.Second}}
	const answer = `{"outcomes":[{"outcome":"ack"},{"outcome":"drop","reason":"no"},{"outcome":"retry_after","delay":"1s"}]}`
	for _, tt := range []struct {
		name, header, body string
		want               []hooks.Outcome
	}{
		{"one outcome per message", "Content-Type: application/json\r\n", answer, mixed},
		{"whatever the content type", "Content-Type: text/plain; charset=utf-8\r\n", " \r\n" + answer + "\n", mixed},
		{"with a byte order mark", "", "\ufeff" + answer, mixed},
		{"fields it does not know are passed over", "", `{"id":"7","took":3,` + answer[1:], mixed},
		{"one outcome for all", "", `{"outcome":"retry_after","delay":"5s","reason":"busy"}`, message.ForAll(hooks.Outcome{Verdict: hooks.RetryAfter, Delay: 5 * time.Second, Reason: "busy"}, 3)},
		{"one that cannot be read fails its message", "", `{"outcomes":[{"outcome":"ack"},{"outcome":"ok"},{}]}`,
			[]hooks.Outcome{{Verdict: hooks.Ack}, {Reason: `malformed answer: outcome "ok" is none of ack, drop, retry, retry_after`}, {Reason: "malformed answer: no outcome"}}},
		{"too few fail all", "", `{"outcomes":[{"outcome":"ack"},{"outcome":"ack"}]}`, malformedBody("2 outcomes for 3 messages")},
		{"none fails all", "", `{"outcomes":[]}`, malformedBody("0 outcomes for 3 messages")},
		{"an object that says nothing fails all", "", `{"status":"ok"}`, malformedBody("no outcome")},
		{"both ways of answering fail all", "", `{"outcome":"ack","outcomes":[{"outcome":"ack"}]}`, malformedBody("both outcome and outcomes")},
		{"a bare list fails all", "", `["ack","ack","ack"]`, malformedBody(`no JSON object: ["ack","ack","ack"]`)},
		{"JSON that is cut fails all", "", answer[:60], malformedBody("no JSON object: " + answer[:60])},
		{"two documents fail all", "", `{"outcome":"ack"}{"outcome":"ack"}`, malformedBody(`no JSON object: {"outcome":"ack"}{"outcome":"ack"}`)},
		{"an encoding that nobody asked for fails all", "Content-Encoding: gzip\r\n", "\x1f\x8bxyz", malformedBody("the body is encoded as gzip, which was not asked for")},
		{"an answer over the bound fails all", "", `{"pad":"` + strings.Repeat("x", message.MaxBatchAnswer) + `",` + answer[1:], malformedBody("the body is longer than 1048576 bytes")},
		{"as large as the bound", "", `{"pad":"` + strings.Repeat("x", message.MaxBatchAnswer-len(answer)-10) + `",` + answer[1:], mixed},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			for _, status := range []string{"200 OK", "207 Multi-Status"} {
				h := httpHandler(serveRaw(t, fmt.Sprintf("HTTP/1.1 %s\r\n%sContent-Length: %d\r\n\r\n%s", status, tt.header, len(tt.body), tt.body)))
				hooktest.WantOutcomes(t, hooktest.HandleBatch(t, newHook(t, h, setup.Options{}), hooktest.Three()), tt.want)
			}
		})
	}
	t.Run("a body that breaks off fails all", func(t *testing.T) {
		t.Parallel()
		h := httpHandler(serveRaw(t, "HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n"+answer))
		hooktest.WantOutcomes(t, hooktest.HandleBatch(t, newHook(t, h, setup.Options{}), hooktest.Three()), malformedBody("the body broke off: the server closed the connection without an answer"))
	})
	t.Run("a reply goes with its message", func(t *testing.T) {
		t.Parallel()
		const answer = `{"outcomes":[{"outcome":"ack","reply":"one"},{"outcome":"ack","reply_base64":"/wA="},{"outcome":"ack"}]}`
		h := httpHandler(serveRaw(t, fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(answer), answer)))
		h.Reply = true
		got := hooktest.HandleBatch(t, newHook(t, h, setup.Options{}), hooktest.Three())
		if string(got[0].Reply) != "one" || string(got[1].Reply) != "\xff\x00" || got[2].Reply != nil {
			t.Errorf("replies %q, %q, %q", got[0].Reply, got[1].Reply, got[2].Reply)
		}
	})
}

// An answer to a batch leaves the connection to the next one.
func TestHTTPBatchKeepsItsConnection(t *testing.T) {
	t.Parallel()
	from := make(chan string, 2)
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		from <- r.RemoteAddr
		io.WriteString(w, `{"outcomes":[{"outcome":"ack"},{"outcome":"drop"},{"outcome":"retry"}]}`)
	})
	e := newHook(t, httpHandler(s.URL), setup.Options{}).(*endpoint)
	dial, dialled := e.dial, 0
	e.dial = func(ctx context.Context, network, addr string) (net.Conn, error) {
		if dialled++; dialled > 1 {
			return nil, errors.New("a second connection is dialled")
		}
		return dial(ctx, network, addr)
	}
	hooktest.HandleBatch(t, e, hooktest.Three())
	hooktest.HandleBatch(t, e, hooktest.Three())
	if first, second := <-from, <-from; first != second {
		t.Errorf("batches came from %s and %s, want one connection", first, second)
	}
}
