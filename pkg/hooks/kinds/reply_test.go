package kinds

import (
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"github.com/rsctl/rsctl/pkg/hooks"
	"github.com/rsctl/rsctl/pkg/spec"
)

func TestExecReplies(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, script string
		want         hooks.Outcome
	}{
		{"standard output is the reply, byte for byte", `printf 'a\n\000b\n'`,
			hooks.Outcome{Verdict: hooks.Ack, Reply: []byte("a\n\x00b\n")}},
		{"no output is an empty reply", "true", hooks.Outcome{Verdict: hooks.Ack, Reply: []byte{}}},
		{"a reply of 1 MiB is whole", "head -c 1048576 /dev/zero",
			hooks.Outcome{Verdict: hooks.Ack, Reply: make([]byte, 1<<20)}},
		{"a longer reply is a failure", "head -c 1048577 /dev/zero",
			hooks.Outcome{Reason: "the reply on standard output is longer than 1048576 bytes"}},
		{"a drop has no reply", "echo x; exit 65", hooks.Outcome{Verdict: hooks.Drop, Reason: "exit status 65"}},
		{"a retry has no reply", "echo x; exit 1", hooks.Outcome{Verdict: hooks.Retry, Reason: "exit status 1"}},
		{"descriptor 4 decides about the reply too", "echo x; echo ack >&4; exit 1",
			hooks.Outcome{Verdict: hooks.Ack, Reply: []byte("x\n")}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			h := sh(t, tt.script)
			h.Reply = true
			if got := handle(t, h, hooks.Message{}); fmt.Sprintf("%#v", got) != fmt.Sprintf("%#v", tt.want) {
				t.Errorf("got %v with a reply of %d bytes, want %v with %d", got.Verdict, len(got.Reply), tt.want.Verdict, len(tt.want.Reply))
			}
		})
	}
}

func TestAReplyIsNotLogged(t *testing.T) {
	t.Parallel()
	log := &strings.Builder{}
	h := sh(t, "echo answer; echo note >&2")
	h.Reply = true
	hook := newHook(t, h, Options{Log: slog.New(slog.NewTextHandler(log, nil))})
	if _, err := hook.Handle(t.Context(), hooks.Message{}); err != nil {
		t.Fatal(err)
	}
	if text := log.String(); strings.Contains(text, "answer") || !strings.Contains(text, "note") {
		t.Errorf("log %q, want stderr alone", text)
	}
}

func TestHTTPReplies(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		answer http.HandlerFunc
		want   hooks.Outcome
	}{
		{"the body is the reply, with its content type", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.Write([]byte("{}\x00"))
		}, hooks.Outcome{Verdict: hooks.Ack, Reply: []byte("{}\x00"), ReplyType: "application/json"}},
		{"no body is an empty reply", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) },
			hooks.Outcome{Verdict: hooks.Ack, Reply: []byte{}}},
		{"a content type that AMQP cannot carry is left out", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", strings.Repeat("x", 256))
			w.Write([]byte("y"))
		}, hooks.Outcome{Verdict: hooks.Ack, Reply: []byte("y")}},
		{"a body over 1 MiB is a failure", func(w http.ResponseWriter, _ *http.Request) { w.Write(make([]byte, 1<<20+1)) },
			hooks.Outcome{Reason: "the reply is longer than 1048576 bytes"}},
		{"a refusal has no reply", func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", http.StatusNotFound) },
			hooks.Outcome{Verdict: hooks.Retry, Reason: "HTTP 404 Not Found: no"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			h := httpHandler(serve(t, tt.answer).URL)
			h.Reply = true
			if got := handle(t, h, hooks.Message{}); fmt.Sprintf("%#v", got) != fmt.Sprintf("%#v", tt.want) {
				t.Errorf("got %v %q with a reply of %d bytes, want %v %q with %d",
					got.Verdict, got.Reason, len(got.Reply), tt.want.Verdict, tt.want.Reason, len(tt.want.Reply))
			}
		})
	}
}

func TestAReplyThatBreaksOffIsAFailure(t *testing.T) {
	t.Parallel()
	h := httpHandler(serveRaw(t, "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf"))
	h.Reply = true
	got := handle(t, h, hooks.Message{})
	if got.Verdict != hooks.Failed || got.Reply != nil || !strings.HasPrefix(got.Reason, "the reply broke off") {
		t.Errorf("got %+v, want a failure", got)
	}
}

func TestWithoutReplyNothingIsKept(t *testing.T) {
	t.Parallel()
	s := serve(t, func(w http.ResponseWriter, _ *http.Request) { w.Write([]byte("x")) })
	for _, h := range []*spec.Handler{sh(t, "echo x"), httpHandler(s.URL)} {
		if got := handle(t, h, hooks.Message{}); got.Verdict != hooks.Ack || got.Reply != nil {
			t.Errorf("%s: got %+v, want an ack without a reply", h.Kind, got)
		}
	}
}
