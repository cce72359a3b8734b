package transport

import (
	"bytes"
	"io"
	"sync/atomic"

	"github.com/rsctl/rsctl/pkg/hooks/http/internal/exchange"
)

// bodyOf returns what makes a reader of data for each time it is sent. A large one
// is counted; a small one is taken at once, together with the headers.
func bodyOf(data []byte) func() (io.ReadCloser, error) {
	if len(data) <= exchange.MaxSmallBody {
		return func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(data)), nil }
	}
	left := new(atomic.Int64)
	return func() (io.ReadCloser, error) { return newCountedBody(data, left), nil }
}

// A countedBody tells how much of it has not been taken.
type countedBody struct {
	data *bytes.Reader
	left *atomic.Int64
}

func newCountedBody(data []byte, left *atomic.Int64) *countedBody {
	left.Store(int64(len(data)))
	return &countedBody{bytes.NewReader(data), left}
}

func (b *countedBody) Read(p []byte) (int, error) {
	n, err := b.data.Read(p)
	b.left.Add(-int64(n))
	return n, err
}

// Close implements [io.Closer].
func (b *countedBody) Close() error { return nil }
