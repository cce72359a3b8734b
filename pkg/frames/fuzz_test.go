package frames

import (
	"bytes"
	"io"
	"testing"
)

// FuzzContentHeader gives the client library content headers of any kind: each
// arrives as one delivery, and the connection lives on.
func FuzzContentHeader(f *testing.F) {
	for _, tt := range unreadable {
		f.Add(uint16(allFlags), allProperties(tt.headers))
	}
	f.Add(uint16(allFlags), allProperties(nested('F', 32)))
	f.Add(uint16(allFlags), allProperties(nested('A', 32)))
	f.Add(uint16(0xFFFF), []byte{})
	s := newServer(f, screened)
	f.Fuzz(func(t *testing.T, flags uint16, properties []byte) {
		s.t = t
		in := header(flags, properties)
		out := through(t, in, testFrameMax, 1+len(properties)%300)
		ok := len(in) <= testFrameMax && readable(in)
		if ok != bytes.Equal(in, out) {
			t.Errorf("readable: %v, and yet changed: %v", ok, !ok)
		}
		if len(out) > testFrameMax {
			t.Errorf("%d bytes in a frame", len(out))
		}
		d := s.deliver(in)
		if _, is := Marked(d.Headers); is == ok {
			t.Errorf("readable: %v, and yet marked: %v", ok, is)
		}
	})
}

// FuzzStream reads anything: it never fails, whatever the bytes and their pieces.
func FuzzStream(f *testing.F) {
	var all []byte
	for _, tt := range unreadable[:6] {
		all = append(all, header(allFlags, allProperties(tt.headers))...)
	}
	f.Add(all, uint8(7), uint16(0))
	f.Add([]byte("\x02\x00\x01\xff\xff\xff\xff............................"), uint8(1), uint16(4096))
	f.Fuzz(func(t *testing.T, in []byte, piece uint8, frameMax uint16) {
		c := Screen(&scripted{r: bytes.NewReader(in), piece: func() int { return int(piece) + 1 }})
		c.Limit(4096 + int(frameMax))
		if _, err := io.ReadAll(c); err != nil && err != io.ErrUnexpectedEOF {
			t.Error(err)
		}
	})
}

func BenchmarkScreen(b *testing.B) {
	var in []byte
	for len(in) < 1<<20 {
		in = append(in, method(1, 60, 60, "\x03tag\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x01q")...)
		in = append(in, header(allFlags, allProperties([]byte("\x05countI\x00\x00\x00\x01\x04nameS\x00\x00\x00\x05value\x04timeT\x00\x00\x00\x00\x00\x00\x00\x01")))...)
		in = append(in, frame(3, 1, make([]byte, 200))...)
	}
	b.SetBytes(int64(len(in)))
	b.ReportAllocs()
	r := bytes.NewReader(in)
	c := Screen(&scripted{r: r, piece: func() int { return 4096 }})
	p := make([]byte, 4096)
	for b.Loop() {
		r.Reset(in)
		for {
			if _, err := c.Read(p); err != nil {
				break
			}
		}
	}
}
