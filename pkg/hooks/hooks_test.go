package hooks

import (
	"errors"
	"io/fs"
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
