package spec

import (
	"net/url"
	"strings"
	"testing"
)

func TestVHost(t *testing.T) {
	t.Parallel()
	for s, want := range map[string]string{
		"amqp://h":                "/",
		"amqp://h/":               "/",
		"amqp://h/%2F":            "/",
		"amqp://h//":              "/",
		"amqp://h/%2Ftest":        "/test",
		"amqp://h/test":           "test",
		"amqp://h/a/b":            "a/b",
		"amqp://h/a%2Fb":          "a/b",
		"amqps://u:p@h:5671/x%20": "x ",
		"amqp://":                 "/",
		"amqp:///":                "/",
		"amqp:////v":              "/v",
		"amqp://///v":             "v",
		"amqp://h/v?heartbeat=5":  "v",
	} {
		if got, err := VHost(s); err != nil || got != want {
			t.Errorf("VHost(%q) = %q, %v; want %q", s, got, err, want)
		}
	}
}

func TestURLsThatAreRefusedWithoutBeingRepeated(t *testing.T) {
	t.Parallel()
	for s, want := range map[string]string{
		"":                           "empty",
		"h/":                         "must start with amqp://",
		"localhost:5672":             "must start with amqp://",
		"http://u:zecret@h/":         "must start with amqp://",
		"AMQP://u:zecret@h/":         "must start with amqp://",
		"amqp://u:se%zzcret@h/":      "not followed by two hexadecimal digits",
		"amqp://u:zecret%@h/":        "not followed by two hexadecimal digits",
		"amqp://u:z^cret@h/":         "reserved character",
		"amqp://u:ze cret@h/":        "space",
		"amqp://u:zecret\n@h/":       "control character",
		"amqp://u:ze/cret@h/":        "port",
		"amqp://u:ze#cret@h/":        "port",
		"amqp://u:zecret@h/#":        "fragment",
		"amqp://u:zecret@h:99999/":   "1 to 65535",
		"amqp://u:zecret@h:0/":       "1 to 65535",
		"amqp://u:zecret@h:mq/":      "port",
		"amqp://u:zecret@[::1/":      "host",
		"amqp://zecret/with@sign@h/": "before its @",
	} {
		_, err := ParseURL(s)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("ParseURL(%q): %v; want an error with %q", s, err, want)
			continue
		}
		for _, part := range []string{"zecret", "cret", "zz"} {
			if strings.Contains(err.Error(), part) && part != "" {
				t.Errorf("the error for %q shows %q: %v", s, part, err)
			}
		}
		if _, verr := VHost(s); verr == nil {
			t.Errorf("VHost(%q) accepts what ParseURL refuses", s)
		}
	}
}

func TestPasswordsReachTheBrokerAsMeant(t *testing.T) {
	t.Parallel()
	for s, want := range map[string]string{
		"amqp://u:p%40ss%2Fw@h/":       "p@ss/w",
		"amqp://app:pa$USERword$1@mq/": "pa$USERword$1",
		"amqp://u:$${SECRET}@h/":       "",
		"amqp://u:a(b),c!*;=+&~._-@h/": "a(b),c!*;=+&~._-",
	} {
		spec, problems := Parse([]byte("version: 1\nbroker: {url: '"+s+"'}\nqueues: [{name: q, type: classic}]\n"), testOptions("q.yaml"))
		if want == "" {
			if !problems.HasErrors() {
				t.Errorf("%s: { and } are reserved in a URL and must be refused", s)
			}
			continue
		}
		if problems.HasErrors() {
			t.Errorf("%s: %s", s, problems)
			continue
		}
		u, err := url.Parse(spec.Broker.URL.Value)
		if err != nil {
			t.Fatal(err)
		}
		if got, _ := u.User.Password(); got != want {
			t.Errorf("%s: the password is %q, want %q", s, got, want)
		}
	}
}

func TestParseURLMasks(t *testing.T) {
	t.Parallel()
	got, err := ParseURL("amqps://u:secret@h/v")
	if err != nil || got != (Text{"amqps://u:secret@h/v", "amqps://u:***@h/v"}) {
		t.Errorf("ParseURL() = %#v, %v", got, err)
	}
}
