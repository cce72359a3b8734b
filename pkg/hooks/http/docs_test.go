package http

import (
	"fmt"
	"testing"

	"github.com/rsctl/rsctl/pkg/hooks"
	"github.com/rsctl/rsctl/pkg/hooks/http/internal/exchange"
	"github.com/rsctl/rsctl/pkg/hooks/internal/hooktest"
	"github.com/rsctl/rsctl/pkg/hooks/setup"
)

// The page names every header, and the limits are the code's.
func TestDocs_NamesAndLimits(t *testing.T) {
	t.Parallel()
	m := hooks.Message{
		MessageID: "1", CorrelationID: "1", ContentType: "1", ContentEncoding: "1", Type: "1", AppID: "1", ReplyTo: "1",
		Timestamp: 1, Priority: 1,
	}
	e := newHook(t, httpHandler("http://localhost/"), setup.Options{}).(*endpoint)
	for _, f := range e.fields(&m) {
		hooktest.WantOnPage(t, f.Name)
	}
	for _, f := range e.batchFields([]hooks.Message{m}) {
		hooktest.WantOnPage(t, f.Name, f.Value)
	}
	hooktest.WantOnPage(t, fmt.Sprint(exchange.IdleFor.Seconds(), " s"))
	for what, bytes := range map[string]int{
		"A value over %d KiB as sent":              maxHTTPValue,
		"of the message together over %d KiB;":     maxHTTPHeaders,
		"At most %d KiB of a response's body":      maxBody,
		"body and %d KiB of its headers are read;": exchange.MaxResponseHeaders,
	} {
		hooktest.WantOnPage(t, fmt.Sprintf(what, bytes>>10))
	}
}
