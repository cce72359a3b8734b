package spec

import (
	"net/url"
	"strings"
)

// SocketScheme begins the URL of an endpoint on a Unix socket. The socket's
// absolute path stands, percent-encoded, in place of the host:
// http+unix://%2Frun%2Fapp.sock/orders.
const SocketScheme = "http+unix://"

// maxSocketPath is the longest path of a socket that the kernel takes.
const maxSocketPath = 107

var socketHint = "write the socket's absolute path, percent-encoded, in place of the host: " + SocketScheme + "%2Frun%2Fapp.sock/orders"

// SocketURL splits a URL with [SocketScheme] into the socket's path and the URL
// that is asked for over it, whose host is localhost. The error says what to
// change and never repeats the URL.
func SocketURL(s string) (socket string, u *url.URL, err error) {
	rest, ok := strings.CutPrefix(s, SocketScheme)
	if !ok {
		return "", nil, &urlError{"the URL must start with " + SocketScheme, socketHint}
	}
	host, path, _ := strings.Cut(rest, "/")
	if socket, err = url.PathUnescape(host); err != nil {
		return "", nil, urlFault(err)
	}
	switch {
	case !strings.HasPrefix(socket, "/"):
		return "", nil, &urlError{"the URL names no socket", socketHint}
	case len(socket) > maxSocketPath:
		return "", nil, &urlError{"the socket's path is longer than 107 bytes, the most that the system takes", ""}
	case strings.ContainsFunc(socket, isBlank):
		return "", nil, &urlError{"the socket's path holds a space or a control character", ""}
	}
	u, err = parseURL("http://localhost/"+path, httpSchemes)
	return socket, u, err
}

// endpoint reads the URL of an http handler.
func (d *handlerDecoder) endpoint(n *node) Text {
	if n == nil || !strings.HasPrefix(n.value, SocketScheme) {
		return d.url(n, httpSchemes)
	}
	if _, _, err := SocketURL(n.value); err != nil {
		d.refuseURL(n, err)
	}
	return plainText(n)
}
