package http

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/rsctl/rsctl/pkg/hooks"
)

func TestReply(t *testing.T) {
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

func TestReply_ThatBreaksOffIsAFailure(t *testing.T) {
	t.Parallel()
	h := httpHandler(serveRaw(t, "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf"))
	h.Reply = true
	got := handle(t, h, hooks.Message{})
	if got.Verdict != hooks.Failed || got.Reply != nil || !strings.HasPrefix(got.Reason, "the reply broke off") {
		t.Errorf("got %+v, want a failure", got)
	}
}

func TestReply_IsNotKeptUnlessAskedFor(t *testing.T) {
	t.Parallel()
	s := serve(t, func(w http.ResponseWriter, _ *http.Request) { w.Write([]byte("x")) })
	if got := handle(t, httpHandler(s.URL), hooks.Message{}); got.Verdict != hooks.Ack || got.Reply != nil {
		t.Errorf("got %+v, want an ack without a reply", got)
	}
}
