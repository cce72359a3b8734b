package worker

import (
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rsctl/rsctl/pkg/hooks"
	"github.com/rsctl/rsctl/pkg/hooks/internal/hooktest"
	"github.com/rsctl/rsctl/pkg/hooks/internal/process"
	"github.com/rsctl/rsctl/pkg/hooks/setup"
)

func TestWorkerProbe(t *testing.T) {
	t.Parallel()
	t.Run("one that waits for requests is fine", func(t *testing.T) {
		t.Parallel()
		if err := newHook(t, workerHandler(t, "obey"), setup.Options{}).(hooks.Prober).Probe(t.Context()); err != nil {
			t.Errorf("Probe() = %v, want nil", err)
		}
	})
	for _, tt := range []struct{ name, script, want string }{
		{"one that ends is not", "echo no database >&2; exit 7", "started, and then ended with exit status 7: no database"},
		{"one that greets on its standard output is not", "echo ready; sleep 60", "printed a line that is no JSON object: ready"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w := newHook(t, shWorker(t, tt.script), setup.Options{}).(*workers)
			w.watch = time.Minute
			if err := w.Probe(t.Context()); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("Probe() = %v, want %q", err, tt.want)
			}
		})
	}
}

func TestWorkerCheckStartsNothing(t *testing.T) {
	t.Parallel()
	h := shWorker(t, "touch started")
	hook := newHook(t, h, setup.Options{})
	if err := hook.(hooks.Checker).Check(t.Context()); err != nil {
		t.Errorf("Check() = %v", err)
	}
	if hook.(*workers).pool.slots[0].proc != nil {
		t.Error("a process was started")
	}
	h.Command = hooktest.Texts("./gone.py")
	if err := newHook(t, h, setup.Options{}).(hooks.Checker).Check(t.Context()); !errors.Is(err, hooks.ErrUnavailable) {
		t.Errorf("Check() = %v, want ErrUnavailable", err)
	}
}

func TestWorkerClose(t *testing.T) {
	t.Parallel()
	t.Run("gives the end of input first", func(t *testing.T) {
		t.Parallel()
		h := shWorker(t, `while read -r line; do echo '{"id":"1","outcome":"ack"}'; done; echo > ended`)
		hook := newHook(t, h, setup.Options{})
		hook.(*workers).pool.endFor = hooktest.Patience
		hooktest.Handle(t, hook, hooks.Message{})
		hook.(hooks.Closer).Close()
		hooktest.ReadFile(t, h.Dir+"/ended")
	})
	t.Run("ends one that stays", func(t *testing.T) {
		t.Parallel()
		h := workerHandler(t, "outstay")
		hook := newHook(t, h, setup.Options{})
		if err := hook.(hooks.Prober).Probe(t.Context()); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		hook.(hooks.Closer).Close()
		if took := time.Since(began); took < endFor/2 || took > 30*time.Second { // the worker would stay for a minute
			t.Errorf("Close() took %v", took)
		}
	})
	t.Run("a closed worker is unavailable", func(t *testing.T) {
		t.Parallel()
		hook := newHook(t, workerHandler(t, "obey"), setup.Options{})
		hook.(hooks.Closer).Close()
		if _, err := hook.Handle(t.Context(), hooks.Message{}); !errors.Is(err, hooks.ErrUnavailable) {
			t.Errorf("Handle() error = %v, want ErrUnavailable", err)
		}
	})
	t.Run("during calls", func(t *testing.T) {
		t.Parallel()
		hook := newHook(t, workerHandler(t, "obey"), setup.Options{Concurrency: 4})
		hook.(*workers).pool.endFor = hooktest.Patience
		var calls sync.WaitGroup
		for range 16 {
			calls.Go(func() {
				for {
					got, err := hook.Handle(t.Context(), hooks.Message{Body: []byte("ack")})
					if err != nil {
						if !errors.Is(err, hooks.ErrUnavailable) {
							t.Error(err)
						}
						return
					}
					if got.Verdict != hooks.Ack {
						t.Errorf("got %+v, want Ack", got)
					}
				}
			})
		}
		time.AfterFunc(100*time.Millisecond, func() { hook.(hooks.Closer).Close() })
		calls.Wait()
	})
}

func TestWorkerLog(t *testing.T) {
	t.Parallel()
	o, log := hooktest.Logged()
	hook := newHook(t, shWorker(t, `read -r l; printf 'a\033[2Jb\n' >&2; head -c 1000000 /dev/zero | tr '\0' '\n' >&2
		i=0; while [ $i -lt 100 ]; do printf '%2000d\n' 7 >&2; i=$((i+1)); done; echo '{"id":"1","outcome":"ack"}'; cat >/dev/null`), o)
	if got := hooktest.Handle(t, hook, hooks.Message{}); got.Verdict != hooks.Ack {
		t.Errorf("got %+v, want Ack", got)
	}
	hook.(hooks.Closer).Close()
	text := log.String()
	for _, want := range []string{`"line":"a\\x1b[2Jb"`, `"stream":"stderr"`, `"pid":`, "handler output truncated"} {
		if !strings.Contains(text, want) {
			t.Errorf("the log does not contain %s", want)
		}
	}
	if len(text) > 4*process.MaxStream {
		t.Errorf("%d bytes were logged", len(text))
	}
}
