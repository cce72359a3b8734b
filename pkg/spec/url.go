package spec

import (
	"errors"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// DefaultURL is the broker of a spec that names none.
const DefaultURL = "${AMQP_URL:-amqp://guest:guest@localhost:5672/}"

// ParseURL checks a broker URL that was given outside a spec, for example on
// the command line. Nothing in it is interpolated. The error says what to
// change and never repeats the URL.
func ParseURL(s string) (Text, error) {
	if err := checkURL(s, amqpSchemes); err != nil {
		return Text{}, err
	}
	return Text{Value: s, Source: maskURL(s)}, nil
}

// VHost returns the virtual host that an amqp URL selects, as RabbitMQ's
// clients read it: amqp://h, amqp://h/, amqp://h/%2F and amqp://h// mean "/",
// amqp://h/%2Ftest means "/test", amqp://h/a/b means "a/b". The error never
// repeats the URL.
func VHost(s string) (string, error) {
	u, err := parseURL(s, amqpSchemes)
	if err != nil {
		return "", err
	}
	path := strings.TrimPrefix(u.Path, "/")
	if u.Host == "" && strings.HasPrefix(u.Path, "///") {
		path = u.Path[len("///"):]
	}
	if path == "" {
		return "/", nil
	}
	return path, nil
}

var (
	amqpSchemes = []string{"amqp", "amqps"}
	httpSchemes = []string{"http", "https"}
)

// urlError is a fault and a remedy that hold nothing of the URL itself.
type urlError struct{ fault, hint string }

func (e *urlError) Error() string {
	if e.hint == "" {
		return e.fault
	}
	return e.fault + "; " + e.hint
}

const encodeHint = "percent-encode reserved characters in user, password and vhost: @ is %40, : is %3A, / is %2F, ? is %3F, # is %23, % is %25"

func checkURL(s string, schemes []string) error {
	_, err := parseURL(s, schemes)
	return err
}

func parseURL(s string, schemes []string) (*url.URL, error) {
	want := schemes[0] + ":// or " + schemes[1] + "://"
	scheme, rest, ok := strings.Cut(s, "://")
	switch {
	case s == "":
		return nil, &urlError{"the URL is empty", "write an " + want + " URL"}
	case !ok || !slices.Contains(schemes, scheme):
		return nil, &urlError{"the URL must start with " + want, ""}
	case strings.ContainsFunc(s, isBlank):
		return nil, &urlError{"the URL holds a space or a control character", encodeHint}
	case strings.Contains(authority(rest), ","):
		return nil, severalHosts(schemes)
	}
	u, err := url.Parse(s)
	if err != nil {
		return nil, urlFault(err)
	}
	return u, checkParts(u, rest)
}

// authority is the host and port of what follows a scheme, as far as it can be
// told from a URL that may not be valid.
func authority(rest string) string {
	if i := strings.IndexAny(rest, "/?#"); i >= 0 {
		rest = rest[:i]
	}
	return rest[strings.LastIndexByte(rest, '@')+1:]
}

// severalHosts refuses the list of hosts that some clients take in one URL.
func severalHosts(schemes []string) error {
	if slices.Equal(schemes, amqpSchemes) {
		return &urlError{"the URL names more than one host", "list the addresses under broker.urls, each as a URL of its own"}
	}
	return &urlError{"the URL names more than one host", ""}
}

func isBlank(r rune) bool { return r <= ' ' || r == 0x7f }

// urlFault says what net/url stumbled over. Its own error repeats the whole
// URL, and parts of the password as a "port" or an "escape".
func urlFault(err error) error {
	var ue *url.Error
	if errors.As(err, &ue) {
		err = ue.Err
	}
	var escape url.EscapeError
	text := err.Error()
	switch {
	case errors.As(err, &escape):
		return &urlError{"the URL holds a % that is not followed by two hexadecimal digits", encodeHint}
	case strings.Contains(text, "userinfo"):
		return &urlError{"the user or password of the URL holds a reserved character", encodeHint}
	case strings.Contains(text, "port"):
		return &urlError{"the port of the URL is not a number, or its password holds a : or /", encodeHint}
	case strings.Contains(text, "host"), strings.Contains(text, "]"):
		return &urlError{"the host of the URL is not valid", encodeHint}
	}
	return &urlError{"the URL is not valid", encodeHint}
}

func checkParts(u *url.URL, rest string) error {
	if port := u.Port(); port != "" {
		if n, err := strconv.Atoi(port); err != nil || n < 1 || n > 65535 {
			return &urlError{"the port of the URL must be from 1 to 65535", ""}
		}
	}
	if u.Fragment != "" || strings.Contains(rest, "#") {
		return &urlError{"the URL holds a #, which starts a fragment", encodeHint}
	}
	if u.Host == "" && slices.Contains(httpSchemes, u.Scheme) {
		return &urlError{"the URL has no host", ""}
	}
	if strings.Contains(u.Path, "@") && u.User == nil {
		return &urlError{"the URL holds a / before its @", encodeHint}
	}
	return nil
}
