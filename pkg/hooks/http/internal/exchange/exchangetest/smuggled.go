// Package exchangetest holds what tests of an exchange over HTTP/1.1 share.
package exchangetest

import "strings"

// Smuggled are bodies in which some server reads a request.
var Smuggled = map[string]string{
	"a whole request":                 "POST /evil HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n",
	"one that swallows the next":      "POST /evil HTTP/1.1\r\nHost: x\r\nContent-Length: 300\r\n\r\n",
	"one whose header takes the next": "POST /evil HTTP/1.1\r\nX: ",
	"one of HTTP/1.0":                 "GET /evil HTTP/1.0\n\n",
	"one of HTTP/0.9":                 "GET /evil\r\n",
	"one in lower case":               "post /evil http/1.1\r\n\r\n",
	"one with tabs":                   "GET\t/evil\tHTTP/1.1\r\n\r\n",
	"one with blanks of Latin-1":      "GET\xa0/evil\r\n",
	"one after other things":          "a: 1\r\n\r\nGET /evil HTTP/1.1\r\n\r\n",
	"one to a whole address":          "GET http://x/evil\r\n",
	"one that the next one completes": "GET /evil?",
	"one without a path":              "HEAD x",
	"two requests":                    strings.Repeat("GET /evil HTTP/1.1\r\n\r\n", 2),
	"the end of headers":              "x\r\n\r\n",
	"no request":                      "{\"n\":1}\r\n",
	"no line either":                  "{\"n\":1}",
}
