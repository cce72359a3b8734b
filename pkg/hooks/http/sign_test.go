package http

import (
	"net/http"
	"strings"
	"testing"

	webhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/rsctl/rsctl/pkg/hooks"
	"github.com/rsctl/rsctl/pkg/hooks/http/internal/exchange"
	"github.com/rsctl/rsctl/pkg/hooks/internal/hooktest"
	"github.com/rsctl/rsctl/pkg/spec"
)

const (
	newSecret   = "whsec_bmV3IHNlY3JldCBvZiAyNCBieXRlcw=="
	oldSecret   = "b2xkIHNlY3JldCBvZiAyNCBieXRlcw==" // the prefix may be left out
	otherSecret = "whsec_b3RoZXIgc2VjcmV0IDI0IGJ5dGVz"
)

func signed(secrets ...string) func(h *spec.Handler) {
	return func(h *spec.Handler) { h.Secrets = hooktest.Texts(secrets...) }
}

// verified reports whether a receiver with this secret takes the request.
func verified(t *testing.T, secret string, body string, headers http.Header) bool {
	t.Helper()
	w, err := webhooks.NewWebhook(secret)
	if err != nil {
		t.Fatal(err)
	}
	return w.Verify([]byte(body), headers) == nil
}

func TestSignature_OfARequestIsVerified(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		m      hooks.Message
		wantID string
	}{
		{"a message id is the webhook id", hooks.Message{MessageID: "m-1", Body: []byte(`{"a":1}`)}, "m-1"},
		{"an id is escaped, and so is what divides the signed text", hooks.Message{MessageID: "a.b é\r\n", Body: []byte("x")}, "a%2Eb %C3%A9%0D%0A"},
		{"a body of bytes", hooks.Message{MessageID: "m", Body: []byte{0, 0xff}}, "m"},
		{"an empty body", hooks.Message{MessageID: "m"}, "m"},
		{"a body that takes the other way of sending", hooks.Message{MessageID: "m", Body: make([]byte, exchange.MaxSmallBody+1)}, "m"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := capture(t, tt.m, signed(newSecret, oldSecret))
			wantHeaders(t, r, map[string]string{"Webhook-Id": tt.wantID})
			if r.body != string(tt.m.Body) {
				t.Error("another body arrived")
			}
			for _, secret := range []string{newSecret, oldSecret} {
				if !verified(t, secret, r.body, r.Header) {
					t.Errorf("the library does not verify it with %s: %v", secret, r.Header)
				}
			}
			if verified(t, otherSecret, r.body, r.Header) || verified(t, newSecret, r.body+"x", r.Header) {
				t.Error("another secret or another body is verified as well")
			}
		})
	}
}

func TestSignature_NeedsASecret(t *testing.T) {
	t.Parallel()
	r := capture(t, hooks.Message{MessageID: "m"}, nil)
	for name := range r.Header {
		if strings.HasPrefix(name, "Webhook-") {
			t.Errorf("%s was sent", name)
		}
	}
}

func TestSignature_MessageWithoutIDKeepsItsWebhookID(t *testing.T) {
	t.Parallel()
	first := hooks.Message{Queue: "q", RoutingKey: "q", Attempt: 1, Timestamp: 1_700_000_000, Body: []byte("x")}
	again := first
	again.Attempt, again.Redelivered, again.Headers = 3, true, map[string]any{"x-ruststream-retry-count": "2"}
	if a, b := webhookID(&first), webhookID(&again); a != b || !strings.HasPrefix(a, "msg_") || len(a) != 36 {
		t.Errorf("ids %q and %q, want the same", a, b)
	}
	for name, edit := range map[string]func(m *hooks.Message){
		"another body":             func(m *hooks.Message) { m.Body = []byte("y") },
		"another time":             func(m *hooks.Message) { m.Timestamp++ },
		"another queue":            func(m *hooks.Message) { m.Queue = "p" },
		"text that moves a border": func(m *hooks.Message) { m.Queue, m.Exchange = "", "q" },
	} {
		other := first
		edit(&other)
		if webhookID(&other) == webhookID(&first) {
			t.Errorf("%s has the same id", name)
		}
	}
}
