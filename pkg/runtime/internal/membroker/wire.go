package membroker

import (
	"encoding/binary"
	"errors"
	"io"
)

const (
	methodFrame = 1
	headerFrame = 2
	bodyFrame   = 3
	frameEnd    = 0xCE
	frameMax    = 128 << 10
	headBytes   = 7 // type, channel and size
)

var errBadFrame = errors.New("a frame that does not end")

type frame struct {
	kind    byte
	channel uint16
	payload []byte
}

func readFrame(r io.Reader) (frame, error) {
	var head [headBytes]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return frame{}, err
	}
	body := make([]byte, binary.BigEndian.Uint32(head[3:])+1)
	if _, err := io.ReadFull(r, body); err != nil {
		return frame{}, err
	}
	last := len(body) - 1
	if body[last] != frameEnd {
		return frame{}, errBadFrame
	}
	return frame{head[0], binary.BigEndian.Uint16(head[1:]), body[:last]}, nil
}

func appendFrame(out []byte, f frame) []byte {
	out = append(out, f.kind)
	out = binary.BigEndian.AppendUint16(out, f.channel)
	out = binary.BigEndian.AppendUint32(out, uint32(len(f.payload)))
	return append(append(out, f.payload...), frameEnd)
}

// method names what a frame asks for, by class and number.
type method struct{ class, id uint16 }

// arguments are what follows a method's name, written one after the other.
type arguments []byte

func call(m method) arguments {
	return binary.BigEndian.AppendUint16(binary.BigEndian.AppendUint16(nil, m.class), m.id)
}

func (a arguments) octet(v byte) arguments    { return append(a, v) }
func (a arguments) short(v uint16) arguments  { return binary.BigEndian.AppendUint16(a, v) }
func (a arguments) long(v uint32) arguments   { return binary.BigEndian.AppendUint32(a, v) }
func (a arguments) number(v uint64) arguments { return binary.BigEndian.AppendUint64(a, v) }
func (a arguments) text(s string) arguments   { return append(append(a, byte(len(s))), s...) }
func (a arguments) longText(s string) arguments {
	return append(a.long(uint32(len(s))), s...)
}
func (a arguments) bit(v bool) arguments {
	if v {
		return append(a, 1)
	}
	return append(a, 0)
}

// reader takes arguments apart. What is not there reads as zero: clients are trusted.
type reader struct{ b []byte }

func (r *reader) take(n int) []byte {
	n = min(n, len(r.b))
	var got []byte
	got, r.b = r.b[:n], r.b[n:]
	return got
}

func (r *reader) uint(bytes int) (v uint64) {
	for _, b := range r.take(bytes) {
		v = v<<8 | uint64(b)
	}
	return v
}

func (r *reader) octet() byte    { return byte(r.uint(1)) }
func (r *reader) short() uint16  { return uint16(r.uint(2)) }
func (r *reader) long() uint32   { return uint32(r.uint(4)) }
func (r *reader) number() uint64 { return r.uint(8) }
func (r *reader) text() string   { return string(r.take(int(r.octet()))) }
func (r *reader) table() table   { return parseTable(r.take(int(r.long()))) }
