package hooks

import (
	"errors"
	"io/fs"
	"reflect"
	"slices"
	"testing"
)

func TestVerdictWords(t *testing.T) {
	t.Parallel()
	for v, want := range map[Verdict]string{
		Failed: "retry", Ack: "ack", Drop: "drop", Retry: "retry", RetryAfter: "retry_after", Verdict(99): "retry",
	} {
		if got := v.String(); got != want {
			t.Errorf("Verdict(%d) = %q, want %q", v, got, want)
		}
	}
	if (Outcome{}).Verdict == Ack {
		t.Error("the zero Outcome acknowledges")
	}
}

func TestUnavailableError(t *testing.T) {
	t.Parallel()
	err := error(&UnavailableError{Target: "exec ./a.sh", Err: fs.ErrNotExist})
	if !errors.Is(err, ErrUnavailable) || !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%v hides its kind or its cause", err)
	}
	if got := err.Error(); got != "exec ./a.sh: file does not exist" {
		t.Errorf("Error() = %q", got)
	}
}

func TestSpread(t *testing.T) {
	t.Parallel()
	ack, drop := Outcome{Verdict: Ack}, Outcome{Verdict: Drop}
	for name, tt := range map[string]struct{ answer, want []Outcome }{
		"one outcome holds for all":    {[]Outcome{ack}, []Outcome{ack, ack, ack}},
		"one per message stands":       {[]Outcome{ack, drop, ack}, []Outcome{ack, drop, ack}},
		"too few fail the whole batch": {[]Outcome{ack, ack}, failed(3, "2 outcomes for 3 messages")},
		"too many fail it as well":     {[]Outcome{ack, ack, ack, ack}, failed(3, "4 outcomes for 3 messages")},
		"none fail it as well":         {nil, failed(3, "0 outcomes for 3 messages")},
	} {
		if got := Spread(tt.answer, 3); !reflect.DeepEqual(got, tt.want) {
			t.Errorf("%s: got %+v, want %+v", name, got, tt.want)
		}
	}
}

func failed(n int, reason string) []Outcome {
	return slices.Repeat([]Outcome{{Reason: "malformed answer: " + reason}}, n)
}
