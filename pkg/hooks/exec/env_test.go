package exec

import (
	"errors"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/rsctl/rsctl/pkg/hooks"
	"github.com/rsctl/rsctl/pkg/hooks/internal/hooktest"
	"github.com/rsctl/rsctl/pkg/hooks/setup"
	"github.com/rsctl/rsctl/pkg/spec"
)

// environment runs a hook and returns what it saw.
func environment(t *testing.T, h *spec.Handler, o setup.Options, m hooks.Message) map[string]string {
	t.Helper()
	h.Command = hooktest.Texts("sh", "-c", "env -0 > env")
	if got := hooktest.Handle(t, newHook(t, h, o), m); got.Verdict != hooks.Ack {
		t.Fatalf("got %+v, want Ack", got)
	}
	env := map[string]string{}
	for kv := range strings.SplitSeq(hooktest.ReadFile(t, filepath.Join(h.Dir, "env")), "\x00") {
		if name, value, ok := strings.Cut(kv, "="); ok {
			if _, twice := env[name]; twice {
				t.Errorf("%s is set twice", name)
			}
			env[name] = value
		}
	}
	return env
}

func wantEnv(t *testing.T, got, want map[string]string) {
	t.Helper()
	for _, name := range slices.Sorted(maps.Keys(want)) {
		if value, ok := got[name]; !ok || value != want[name] {
			t.Errorf("%s = %.60q (set: %t), want %.60q", name, value, ok, want[name])
		}
	}
}

func TestExecEnvironment(t *testing.T) {
	t.Parallel()
	m := hooks.Message{
		Queue: "orders", Exchange: "events", RoutingKey: "order.new", Attempt: 2, MaxAttempts: 5, Redelivered: true,
		MessageID: "m-1", CorrelationID: "a\nb", ContentType: "text/plain",
		Headers: map[string]any{
			"tenant": "é a", "x-retry.Count": int64(-3), "on": true, "ratio": 0.5, "raw": []byte("bytes"), "none": nil,
			"list": []any{"a", int64(1)}, "table": map[string]any{"k": "v"}, "größe": "L",
		},
	}
	got := environment(t, hooktest.Command(t, "x"), setup.Options{}, m)
	wantEnv(t, got, map[string]string{
		"RSCTL_QUEUE": "orders", "RSCTL_EXCHANGE": "events", "RSCTL_ROUTING_KEY": "order.new",
		"RSCTL_ATTEMPT": "2", "RSCTL_MAX_ATTEMPTS": "5", "RSCTL_REDELIVERED": "true",
		"RSCTL_MESSAGE_ID": "m-1", "RSCTL_CORRELATION_ID": "a\nb", "RSCTL_CONTENT_TYPE": "text/plain",
		"RSCTL_HEADER_TENANT": "é a", "RSCTL_HEADER_X_RETRY_COUNT": "-3", "RSCTL_HEADER_ON": "true",
		"RSCTL_HEADER_RATIO": "0.5", "RSCTL_HEADER_RAW": "bytes", "RSCTL_HEADER_NONE": "",
		"RSCTL_HEADER_LIST": `["a",1]`, "RSCTL_HEADER_TABLE": `{"k":"v"}`, "RSCTL_HEADER_GR____E": "L",
	})
	if n, omitted := got["RSCTL_HEADERS_OMITTED"]; omitted {
		t.Errorf("RSCTL_HEADERS_OMITTED = %s although nothing is", n)
	}
}

func TestExecEnvironmentOfANakedMessage(t *testing.T) {
	t.Parallel()
	wantEnv(t, environment(t, hooktest.Command(t, "x"), setup.Options{}, hooks.Message{Queue: "q", Attempt: 1}), map[string]string{
		"RSCTL_QUEUE": "q", "RSCTL_EXCHANGE": "", "RSCTL_MESSAGE_ID": "", "RSCTL_CORRELATION_ID": "",
		"RSCTL_MAX_ATTEMPTS": "0", "RSCTL_REDELIVERED": "false", "RSCTL_CONTENT_TYPE": "",
	})
}

func TestExecEnvironmentIsMerged(t *testing.T) {
	t.Parallel()
	h := hooktest.Command(t, "x")
	h.Env = []spec.EnvVar{{Name: "LEVEL", Value: spec.Text{Value: "spec", Source: "${L}"}}, {Name: "OWN", Value: spec.Text{Value: "a=b"}}}
	inherited := []string{
		"PATH=/usr/bin:/bin", "LEVEL=parent", "KEPT=1", "PWD=/elsewhere",
		"RSCTL_MESSAGE_ID=stale", "RSCTL_HEADER_STALE=1", "RSCTL_HEADERS_OMITTED=3",
	}
	got := environment(t, h, setup.Options{Env: inherited}, hooks.Message{})
	wantEnv(t, got, map[string]string{"LEVEL": "spec", "OWN": "a=b", "KEPT": "1", "RSCTL_MESSAGE_ID": ""})
	for _, name := range []string{"RSCTL_HEADER_STALE", "RSCTL_HEADERS_OMITTED"} {
		if v, ok := got[name]; ok {
			t.Errorf("%s=%s comes from another message", name, v)
		}
	}
}

func TestExecEnvironmentOmits(t *testing.T) {
	t.Parallel()
	many := map[string]any{}
	for _, c := range "abcdef" {
		many["h"+string(c)] = strings.Repeat("v", 30_000)
	}
	for _, tt := range []struct {
		name   string
		m      hooks.Message
		want   map[string]string
		absent []string
	}{
		{
			name:   "a value over 32 KiB",
			m:      hooks.Message{Headers: map[string]any{"trace": strings.Repeat("x", 131_000), "ok": "1"}},
			want:   map[string]string{"RSCTL_HEADER_TRACE_OMITTED": "131000", "RSCTL_HEADER_OK": "1", "RSCTL_HEADERS_OMITTED": "1"},
			absent: []string{"RSCTL_HEADER_TRACE"},
		},
		{
			name:   "not a value of 32 KiB",
			m:      hooks.Message{Headers: map[string]any{"trace": strings.Repeat("x", maxEnvValue)}},
			want:   map[string]string{"RSCTL_HEADER_TRACE": strings.Repeat("x", maxEnvValue)},
			absent: []string{"RSCTL_HEADERS_OMITTED", "RSCTL_HEADER_TRACE_OMITTED"},
		},
		{
			name:   "what passes 128 KiB in all",
			m:      hooks.Message{Headers: many},
			want:   map[string]string{"RSCTL_HEADER_HE_OMITTED": "30000", "RSCTL_HEADER_HF_OMITTED": "30000", "RSCTL_HEADERS_OMITTED": "2"},
			absent: []string{"RSCTL_HEADER_HE", "RSCTL_HEADER_HF"},
		},
		{
			name:   "a value with a NUL byte, which no variable can hold",
			m:      hooks.Message{MessageID: "a\x00b", Headers: map[string]any{"bin": []byte{1, 0, 2}}},
			want:   map[string]string{"RSCTL_MESSAGE_ID_OMITTED": "3", "RSCTL_HEADER_BIN_OMITTED": "3"},
			absent: []string{"RSCTL_MESSAGE_ID", "RSCTL_HEADER_BIN"},
		},
		{
			name: "the later of two names that become one variable",
			m:    hooks.Message{Headers: map[string]any{"a-b": "first", "a_b": "second"}},
			want: map[string]string{"RSCTL_HEADER_A_B": "first"},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got := environment(t, hooktest.Command(t, "x"), setup.Options{}, tt.m)
			wantEnv(t, got, tt.want)
			for _, name := range tt.absent {
				if _, ok := got[name]; ok {
					t.Errorf("%s is set", name)
				}
			}
		})
	}
}

func TestExecWarnsOfOmittedHeaders(t *testing.T) {
	t.Parallel()
	o, log := hooktest.Logged()
	hook := newHook(t, hooktest.Command(t, "true"), o)
	for range 3 {
		hooktest.Handle(t, hook, hooks.Message{MessageID: "m-1", Headers: map[string]any{"trace": strings.Repeat("x", 40_000)}})
	}
	got := log.Records(t)
	if len(got) != 1 || got[0]["level"] != "WARN" || got[0]["headers"] != 1.0 {
		t.Errorf("log = %v, want one warning", got)
	}
}

// nearKernelLimit is an environment that leaves about 40 KB of what the kernel
// takes.
func nearKernelLimit(t *testing.T) []string {
	t.Helper()
	var stack syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_STACK, &stack); err != nil {
		t.Fatal(err)
	}
	left := int(min(stack.Cur/4, 6<<20)) - 40_000
	env := []string{"PATH=/usr/bin:/bin"}
	for i := 0; left > 0; i++ {
		n := min(left, 100_000)
		env = append(env, "FILL"+strings.Repeat("I", i)+"="+strings.Repeat("x", n))
		left -= n
	}
	return env
}

func TestExecEnvironmentTooLarge(t *testing.T) {
	t.Parallel()
	large := nearKernelLimit(t)
	headers := map[string]any{"a": strings.Repeat("x", 30_000), "b": strings.Repeat("x", 30_000)}
	h := hooktest.Shell(t, `test "$RSCTL_HEADERS_OMITTED" = 2 && test -z "$RSCTL_HEADER_A"`)
	if got := hooktest.Handle(t, newHook(t, h, setup.Options{Env: large}), hooks.Message{Headers: headers}); got.Verdict != hooks.Ack {
		t.Errorf("got %+v, want Ack without the headers", got)
	}
	over := append(large, "MORE="+strings.Repeat("x", 100_000))
	_, err := newHook(t, h, setup.Options{Env: over}).Handle(t.Context(), hooks.Message{})
	if !errors.Is(err, hooks.ErrUnavailable) || !errors.Is(err, syscall.E2BIG) {
		t.Errorf("Handle() error = %v, want unavailable: argument list too long", err)
	}
}

// What a handler does not need it need not get: the broker's password is in
// rsctl's environment.
func TestExecEnvironmentInheritsOnlyWhatIsNamed(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		only []string
		want string
	}{
		{"all, by default", nil, "AMQP_URL LANG PATH RSCTL_QUEUE SHOP"},
		{"named ones", []string{"PATH", "LANG", "MISSING"}, "LANG PATH RSCTL_QUEUE SHOP"},
		{"none", []string{}, "RSCTL_QUEUE SHOP"},
	} {
		for _, kind := range []spec.HandlerKind{spec.Exec, spec.Worker} {
			h := hooktest.Command(t, "/bin/sh", "-c", `/usr/bin/env | /usr/bin/cut -d= -f1 | /usr/bin/grep -xE 'AMQP_URL|LANG|PATH|RSCTL_QUEUE|SHOP' | /usr/bin/sort > got; [ -e "/dev/fd/4" ] || { read -r line; echo '{"id":"1","outcome":"ack"}'; }`)
			h.Kind, h.InheritOnly = kind, tt.only
			h.Env = []spec.EnvVar{{Name: "SHOP", Value: spec.Text{Value: "a"}}}
			env := []string{"AMQP_URL=amqp://u:secret@h/", "LANG=C", "PATH=/usr/bin:/bin"}
			hook := newHook(t, h, setup.Options{Env: env, Queue: "orders"})
			if got := hooktest.Handle(t, hook, hooks.Message{Queue: "orders"}); got.Verdict != hooks.Ack {
				t.Fatalf("%s, %s: %+v, want an ack", tt.name, kind, got)
			}
			if got := strings.Join(strings.Fields(hooktest.ReadFile(t, h.Dir+"/got")), " "); got != tt.want {
				t.Errorf("%s, %s: the process has %q, want %q", tt.name, kind, got, tt.want)
			}
		}
	}
}

// A handler that trusts a mark must not be told of one by the publisher.
func TestExecEnvironmentMarksCannotBeForged(t *testing.T) {
	t.Parallel()
	big := strings.Repeat("x", maxEnvValue+1)
	m := hooks.Message{Queue: "q", Headers: map[string]any{
		"big": big, "big-omitted": "forged", "Big_Omitted": "forged", "here": "1", "here.omitted": "forged",
		"here_omitted_omitted": big, "s_omitted": "forged",
	}}
	got := environment(t, hooktest.Command(t, "x"), setup.Options{}, m)
	wantEnv(t, got, map[string]string{
		"RSCTL_HEADER_BIG_OMITTED": strconv.Itoa(len(big)), "RSCTL_HEADER_HERE": "1",
		"RSCTL_HEADER_BIG_OMITTED_OMITTED": "6", "RSCTL_HEADERS_OMITTED": "5",
	})
	if mark, there := got["RSCTL_HEADER_HERE_OMITTED"]; there {
		t.Errorf("a header that is there is marked as omitted: %s", mark)
	}
	for name, value := range got {
		if value == "forged" {
			t.Errorf("%s is the publisher's", name)
		}
	}
}
