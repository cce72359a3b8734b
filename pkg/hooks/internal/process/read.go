package process

import (
	"os"
	"sync"
)

// A Taker is handed output piece by piece and must not keep p.
type Taker interface{ Take(p []byte) }

// Drain reads r until its end or its deadline, and beyond that what is there.
func Drain(r *os.File, to Taker) {
	buf := buffers.Get().(*[]byte)
	defer buffers.Put(buf)
	in := NewLateReader(r)
	for {
		n, err := in.Read(*buf)
		to.Take((*buf)[:n])
		if err != nil {
			return
		}
	}
}

var buffers = sync.Pool{New: func() any {
	b := make([]byte, 32<<10)
	return &b
}}

// A BoundedBuffer keeps the first Limit bytes, and remembers that there were more.
type BoundedBuffer struct {
	Limit int
	buf   []byte // at most one byte more than Limit
}

// Take implements [Taker].
func (b *BoundedBuffer) Take(p []byte) {
	b.buf = append(b.buf, p[:min(len(p), b.Limit+1-len(b.buf))]...)
}

// Bytes returns what was kept, when it is all that there was.
func (b *BoundedBuffer) Bytes() []byte { return b.buf }

// Overflown reports whether there was more than Limit bytes.
func (b *BoundedBuffer) Overflown() bool { return len(b.buf) > b.Limit }
