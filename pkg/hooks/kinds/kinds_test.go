package kinds

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/rsctl/rsctl/pkg/hooks/internal/hooktest"
	"github.com/rsctl/rsctl/pkg/hooks/setup"
	"github.com/rsctl/rsctl/pkg/spec"
)

// The conformance tests run in the package of each kind.
func TestRegistry_EveryKindIsTestedForConformance(t *testing.T) {
	t.Parallel()
	for kind := range registry {
		files, err := filepath.Glob("../" + string(kind) + "/*_test.go")
		if err != nil {
			t.Fatal(err)
		}
		var text strings.Builder
		for _, file := range files {
			text.WriteString(hooktest.ReadFile(t, file))
		}
		for _, call := range []string{"hooktest.Conform(t,", "hooktest.ConformBatch(t,"} {
			if !strings.Contains(text.String(), call) {
				t.Errorf("package %s has no test that calls %s…)", kind, call)
			}
		}
	}
}

func TestDocs_ShowASpecOfEveryKind(t *testing.T) {
	t.Parallel()
	seen := map[spec.HandlerKind]bool{}
	for _, text := range hooktest.Snippets(t, "yaml") {
		s, problems := spec.Parse([]byte(text), spec.Options{File: "hooks.md", Dir: t.TempDir()})
		if problems.HasErrors() {
			t.Errorf("%s\n%s", text, problems)
			continue
		}
		seen[s.Queues[0].Handler.Kind] = true
	}
	for kind := range registry {
		if !seen[kind] {
			t.Errorf("no snippet shows an %s handler", kind)
		}
	}
}

func TestNew_Refuses(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		h    spec.Handler
		want string
	}{
		"a kind that nobody has built":       {spec.Handler{Kind: "amqp"}, `"amqp" is not supported`},
		"a worker without a command":         {spec.Handler{Kind: spec.Worker}, "needs a command"},
		"an exec without a command":          {spec.Handler{Kind: spec.Exec}, "needs a command"},
		"an exec with an empty command":      {spec.Handler{Kind: spec.Exec, Command: hooktest.Texts("")}, "needs a command"},
		"an argument with a NUL byte":        {spec.Handler{Kind: spec.Exec, Command: hooktest.Texts("a", "b\x00")}, "NUL"},
		"a signing secret that is no base64": {spec.Handler{Kind: spec.HTTP, URL: hooktest.Texts("http://a/")[0], Secrets: hooktest.Texts("whsec_AAAA", "whsec_hush!")}, "secret 2 is not whsec_"},
		"an empty signing secret":            {spec.Handler{Kind: spec.HTTP, URL: hooktest.Texts("http://a/")[0], Secrets: hooktest.Texts("whsec_")}, "secret 1 is not whsec_"},
		"a header that signing sets":         {spec.Handler{Kind: spec.HTTP, URL: hooktest.Texts("http://a/")[0], Secrets: hooktest.Texts("whsec_AAAA"), Headers: []spec.EnvVar{{Name: "webhook-id"}}}, "because the handler has a secret"},
		"a URL of another scheme":            {spec.Handler{Kind: spec.HTTP, URL: hooktest.Texts("ftp://a/")[0]}, "http://"},
		"a URL without a host":               {spec.Handler{Kind: spec.HTTP, URL: hooktest.Texts("http:///a")[0]}, "host"},
		"a header name with a space":         {spec.Handler{Kind: spec.HTTP, URL: hooktest.Texts("http://a/")[0], Headers: []spec.EnvVar{{Name: "a b"}}}, "not a header name"},
		"a header name that rsctl sets":      {spec.Handler{Kind: spec.HTTP, URL: hooktest.Texts("http://a/")[0], Headers: []spec.EnvVar{{Name: "rsctl-queue"}}}, "set by rsctl"},
		"a header value with a line break":   {spec.Handler{Kind: spec.HTTP, URL: hooktest.Texts("http://a/")[0], Headers: []spec.EnvVar{{Name: "a", Value: spec.Text{Value: "hush\n"}}}}, "line break"},
		"a CA file that is missing":          {spec.Handler{Kind: spec.HTTP, URL: hooktest.Texts("https://a/")[0], TLS: &spec.TLS{CAFile: "/no/ca.pem"}}, "/no/ca.pem"},
		"a certificate without its key":      {spec.Handler{Kind: spec.HTTP, URL: hooktest.Texts("https://a/")[0], TLS: &spec.TLS{CertFile: "/no/c.pem"}}, "cert_file"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := New(&tt.h, setup.Options{})
			if err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "hush") {
				t.Errorf("New() = %v, want an error with %q", err, tt.want)
			}
		})
	}
}
