package exec

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/rsctl/rsctl/pkg/hooks"
	"github.com/rsctl/rsctl/pkg/hooks/internal/hooktest"
	"github.com/rsctl/rsctl/pkg/hooks/setup"
)

func TestReply(t *testing.T) {
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
			h := hooktest.Shell(t, tt.script)
			h.Reply = true
			if got := handle(t, h, hooks.Message{}); fmt.Sprintf("%#v", got) != fmt.Sprintf("%#v", tt.want) {
				t.Errorf("got %v with a reply of %d bytes, want %v with %d", got.Verdict, len(got.Reply), tt.want.Verdict, len(tt.want.Reply))
			}
		})
	}
}

func TestReply_IsNotLogged(t *testing.T) {
	t.Parallel()
	log := &strings.Builder{}
	h := hooktest.Shell(t, "echo answer; echo note >&2")
	h.Reply = true
	hook := newHook(t, h, setup.Options{Log: slog.New(slog.NewTextHandler(log, nil))})
	if _, err := hook.Handle(t.Context(), hooks.Message{}); err != nil {
		t.Fatal(err)
	}
	if text := log.String(); strings.Contains(text, "answer") || !strings.Contains(text, "note") {
		t.Errorf("log %q, want stderr alone", text)
	}
}

func TestReply_IsNotKeptUnlessAskedFor(t *testing.T) {
	t.Parallel()
	if got := handle(t, hooktest.Shell(t, "echo x"), hooks.Message{}); got.Verdict != hooks.Ack || got.Reply != nil {
		t.Errorf("got %+v, want an ack without a reply", got)
	}
}
