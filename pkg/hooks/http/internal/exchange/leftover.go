package exchange

import (
	"net/http"
	"strings"
)

// An endpoint that answers without reading a body leaves it on the connection,
// where it reads it as the beginning of the next request. On a kept connection
// the answer to that would be taken for the answer to the next message. Nothing
// in HTTP/1.1 tells an answer from another, so a connection is kept only while
// nothing of the kind can happen.

// AboutLeftovers reports whether an answer on a connection that has been used
// before can be about what was left there and not about the request: servers say
// so, and hang up, when they cannot read one.
func AboutLeftovers(res *http.Response) bool {
	if !res.Close || res.ProtoMajor != 1 {
		return false
	}
	switch res.StatusCode {
	case http.StatusBadRequest, http.StatusRequestURITooLong, http.StatusRequestHeaderFieldsTooLarge,
		http.StatusNotImplemented, http.StatusHTTPVersionNotSupported:
		return true
	}
	return false
}

// NoAnswer reports whether what came in place of an answer is no HTTP at all, as
// what a server of HTTP/0.9 says about leftovers.
func NoAnswer(err error) bool { return strings.Contains(err.Error(), "malformed HTTP ") }

// EndsUnsure reports whether more may follow an answer than its framing says: a
// body where there can be none.
func EndsUnsure(res *http.Response) bool {
	if res.StatusCode >= 200 && res.StatusCode != http.StatusNoContent && res.StatusCode != http.StatusNotModified {
		return false
	}
	length := res.Header.Get("Content-Length")
	return res.StatusCode < 200 || length != "" && length != "0" || len(res.TransferEncoding) > 0
}
