package message

import (
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/rsctl/rsctl/pkg/hooks"
)

func TestMetadataFields(t *testing.T) {
	t.Parallel()
	m := hooks.Message{
		Queue: "orders", Exchange: "events", RoutingKey: "order.new", Attempt: 2, MaxAttempts: 5, Redelivered: true,
		MessageID: "m-1", CorrelationID: "c-1", ContentType: "text/plain", ContentEncoding: "gzip", Type: "t",
		AppID: "shop", UserID: "guest", ReplyTo: "replies", Expiration: "60000", Timestamp: 1_700_000_000_000,
		Priority: 3, DeliveryMode: 2, Headers: map[string]any{"a": "b"}, Body: []byte("not shown"),
	}
	want := `{"queue":"orders","exchange":"events","routing_key":"order.new","attempt":2,"max_attempts":5,` +
		`"redelivered":true,"message_id":"m-1","correlation_id":"c-1","content_type":"text/plain",` +
		`"content_encoding":"gzip","type":"t","timestamp":1700000000000,"priority":3,"delivery_mode":2,` +
		`"app_id":"shop","user_id":"guest","reply_to":"replies","expiration":"60000","headers":{"a":"b"}}`
	if got := string(AppendMetadata(nil, &m)); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestMetadataHeaderValues(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		value any
		want  string
	}{
		"nothing":                              {nil, `null`},
		"a boolean":                            {true, `true`},
		"the smallest integer":                 {int64(math.MinInt64), `-9223372036854775808`},
		"the largest integer":                  {uint64(math.MaxUint64), `18446744073709551615`},
		"a timestamp beyond what a date holds": {int64(1_700_000_000_000_000), `1700000000000000`},
		"a float":                              {1.5e300, `1.5e+300`},
		"not a number":                         {math.NaN(), `"NaN"`},
		"infinity":                             {math.Inf(1), `"Infinity"`},
		"negative infinity":                    {math.Inf(-1), `"-Infinity"`},
		"control characters":                   {"a\"\\\n\r\t\x00\x7fé\u2028", "\"a\\\"\\\\\\n\\r\\t\\u0000\x7fé\u2028\""},
		"a string that is not UTF-8":           {"a\xff", `{"base64":"Yf8="}`},
		"a byte array":                         {[]byte("abc"), `{"base64":"YWJj"}`},
		"an array":                             {[]any{int64(1), []any{}, "x"}, `[1,[],"x"]`},
		"a table, sorted":                      {map[string]any{"b": nil, "a": map[string]any{}}, `{"a":{},"b":null}`},
		"a type that nobody expected":          {struct{ A int }{1}, `"{1}"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := string(appendValue(nil, tt.value))
			if got != tt.want || !json.Valid([]byte(got)) {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
}

// Whatever the bytes, the result is one line of JSON, and text that is UTF-8
// comes back as it was.
func FuzzMetadata(f *testing.F) {
	f.Add("q", "name", "value", 1.0)
	f.Add("\xff\n", "\x00", "\xc3\x28\u2029\"", math.Inf(-1))
	f.Fuzz(func(t *testing.T, id, name, value string, number float64) {
		m := hooks.Message{MessageID: id, Headers: map[string]any{name: value, "n": number, "list": []any{value, []byte(value)}}}
		b := AppendMetadata(nil, &m)
		var got struct {
			MessageID string `json:"message_id"`
			Headers   map[string]any
		}
		if err := json.Unmarshal(b, &got); err != nil || strings.ContainsAny(string(b), "\r\n") {
			t.Fatalf("%s: %v", b, err)
		}
		if want := strings.ToValidUTF8(id, "\ufffd"); strings.ReplaceAll(got.MessageID, "\ufffd", "") != strings.ReplaceAll(want, "\ufffd", "") {
			t.Errorf("message_id = %q, want %q", got.MessageID, want)
		}
	})
}
