package spec

import (
	"strings"
	"testing"
)

func TestSocketURL(t *testing.T) {
	t.Parallel()
	for s, want := range map[string][2]string{
		"http+unix://%2Frun%2Fapp.sock/orders?a=b": {"/run/app.sock", "http://localhost/orders?a=b"},
		"http+unix://%2frun%2fapp.sock":            {"/run/app.sock", "http://localhost/"},
		"http+unix://%2Frun%2Fa%25b.sock/a%20b":    {"/run/a%b.sock", "http://localhost/a%20b"},
	} {
		socket, u, err := SocketURL(s)
		if err != nil || socket != want[0] || u.String() != want[1] {
			t.Errorf("SocketURL(%q) = %q, %v, %v; want %q", s, socket, u, err, want)
		}
	}
	for s, want := range map[string]string{
		"http://h/":                                        "must start with http+unix://",
		"http+unix://":                                     "names no socket",
		"http+unix:///run/app.sock":                        "names no socket",
		"http+unix://app.sock/x":                           "names no socket",
		"http+unix://%2Fzecret%zz/x":                       "two hexadecimal digits",
		"http+unix://%2Fa%0Ab/x":                           "space or a control character",
		"http+unix://%2Fa/x#zecret":                        "fragment",
		"http+unix://%2F" + strings.Repeat("a", 107) + "/": "longer than 107 bytes",
	} {
		_, _, err := SocketURL(s)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "zecret") {
			t.Errorf("SocketURL(%q): %v, want an error with %q", s, err, want)
		}
	}
}
