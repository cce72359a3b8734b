// Package otlp sends spans to a collector of OpenTelemetry, by OTLP over HTTP
// with protobuf.
//
// OpenTelemetry has a client for that, which links gRPC: 107 packages and a
// seventh of the binary for one POST. Spans are put into their form, and queued,
// by OpenTelemetry's own packages; this one reads the standard's variables and
// posts.
package otlp

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

const (
	// firstPause is how long the client waits before it repeats an export that
	// the collector could not take just now; each further pause is twice as long.
	firstPause = time.Second
	// maxExplanation is how much of a refusal is read for its reason.
	maxExplanation = 1 << 10
)

// client implements [otlptrace.Client].
type client struct {
	settings
	http *http.Client
	stop context.CancelFunc
	over context.Context // done once the client has been stopped
}

// NewClient returns a client that is set up by the standard's variables
// (OTEL_EXPORTER_OTLP_…). It connects to nothing yet. An error names a variable
// that cannot be used, without its value.
func NewClient() (otlptrace.Client, error) {
	s, err := fromEnvironment()
	if err != nil {
		return nil, err
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.TLSClientConfig = s.tls
	return newClient(s, transport), nil
}

func newClient(s settings, transport http.RoundTripper) *client {
	c := &client{settings: s, http: &http.Client{
		Transport:     transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }, // a key would travel along
	}}
	c.over, c.stop = context.WithCancel(context.Background())
	return c
}

// Start implements [otlptrace.Client].
func (c *client) Start(context.Context) error { return nil }

// Stop implements [otlptrace.Client]: an export that still runs is given up.
func (c *client) Stop(context.Context) error {
	c.stop()
	c.http.CloseIdleConnections()
	return nil
}

// UploadTraces implements [otlptrace.Client]. What the collector cannot take just
// now, by its status, is sent again until the timeout.
func (c *client) UploadTraces(ctx context.Context, spans []*tracepb.ResourceSpans) error {
	body, err := c.encode(spans)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	defer context.AfterFunc(c.over, cancel)()
	for pause := firstPause; ; pause *= 2 {
		again, after, err := c.post(ctx, body)
		if !again {
			return err
		}
		wait := time.NewTimer(max(pause, after))
		select {
		case <-ctx.Done():
			wait.Stop()
			return err
		case <-wait.C:
		}
	}
}

// encode returns the request's body. TracesData has the fields of the message
// that the protocol names, ExportTraceServiceRequest, whose package links gRPC.
func (c *client) encode(spans []*tracepb.ResourceSpans) ([]byte, error) {
	body, err := proto.Marshal(&tracepb.TracesData{ResourceSpans: spans})
	if err != nil || !c.gzip {
		return body, err
	}
	var small bytes.Buffer
	w := gzip.NewWriter(&small)
	_, _ = w.Write(body) // a buffer takes everything
	err = w.Close()
	return small.Bytes(), err
}

// post sends the body once. It reports whether the collector asks for it again,
// and after what time at least.
func (c *client) post(ctx context.Context, body []byte) (again bool, after time.Duration, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url, bytes.NewReader(body))
	if err != nil {
		return false, 0, err
	}
	req.Header = c.header.Clone()
	req.Header.Set("Content-Type", "application/x-protobuf")
	if c.gzip {
		req.Header.Set("Content-Encoding", "gzip")
	}
	res, err := c.http.Do(req)
	if err != nil {
		return false, 0, err
	}
	defer res.Body.Close()
	text, _ := io.ReadAll(io.LimitReader(res.Body, maxExplanation)) // a reason that breaks off is one less
	if res.StatusCode >= 200 && res.StatusCode <= 299 {
		return false, 0, nil
	}
	err = fmt.Errorf("the collector answered %s: %s", res.Status, strings.ToValidUTF8(strings.TrimSpace(string(text)), "?"))
	switch res.StatusCode {
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		seconds, _ := strconv.Atoi(res.Header.Get("Retry-After"))
		return true, time.Duration(min(max(seconds, 0), int(c.timeout/time.Second)+1)) * time.Second, err
	}
	return false, 0, err
}
