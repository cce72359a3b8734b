package frames

import (
	"encoding/binary"
	"fmt"
)

const (
	// frontBytes is as much of a content header as can lie before its headers,
	// and their length.
	frontBytes = contentFixed + 2*256 + 4
	// tailBytes is more than can lie behind them.
	tailBytes = 3 << 10
	// pieceBytes is how much is read at once of what is thrown away.
	pieceBytes = 4 << 10
)

// shrink reads a content header frame of total bytes, which no client takes, and
// hands out a marked one. It keeps no more in memory than what it hands out.
func (c *Conn) shrink(total int64) error {
	front := make([]byte, headBytes+min(frontBytes, int(total)-overhead))
	if err := c.take(front); err != nil {
		return err
	}
	head, payload := front[:headBytes], front[headBytes:]
	size := total - overhead
	keep, known := tailOf(payload, size)
	m := Mark{Reason: fmt.Sprintf("its properties and headers have %d bytes; a frame holds %d", size, c.max.Load()-overhead)}
	var err error
	if m.Died, err = c.discard(size - int64(len(payload)) - keep); err != nil {
		return err
	}
	m.Died = m.Died || died(payload)
	tail := make([]byte, keep+1) // and the end of the frame
	if err := c.take(tail); err != nil {
		return err
	}
	var found content
	if known {
		payload = withoutTable(payload, tail[:keep])
		found = scanContent(payload)
	}
	c.out = marked(head, payload, found, m)
	c.out[len(c.out)-1] = tail[keep]
	return nil
}

// tailOf returns how many bytes follow the headers, given how a content header of
// size bytes begins; known is false when that cannot be told.
func tailOf(front []byte, size int64) (tail int64, known bool) {
	_, n, ok := tableIn(front)
	if tail = size - n; ok && tail >= 0 && tail <= tailBytes && n >= int64(len(front)) {
		return tail, true
	}
	return 0, false
}

// tableIn returns where the headers begin and end.
func tableIn(front []byte) (start int, end int64, ok bool) {
	flags := binary.BigEndian.Uint16(front[contentFixed-2:])
	s := scanner{p: front, at: contentFixed}
	s.texts(flags, flagContentType, flagContentEncoding)
	start = s.at
	n := s.long()
	return start, int64(s.at) + int64(n), !s.failed && flags&flagHeaders != 0 && flags&flagsUnknown == 0
}

// withoutTable is a content header with an empty table.
func withoutTable(front, tail []byte) []byte {
	start, _, _ := tableIn(front)
	p := append([]byte(nil), front[:start]...)
	p = append(p, 0, 0, 0, 0)
	return append(p, tail...)
}

// discard throws n bytes away and reports whether they may hold a death history.
func (c *Conn) discard(n int64) (history bool, err error) {
	var piece [pieceBytes]byte
	const overlap = len("x-first-death-")
	have := 0
	for n > 0 {
		k := int(min(n, int64(len(piece)-have)))
		if err := c.take(piece[have : have+k]); err != nil {
			return history, err
		}
		n -= int64(k)
		have += k
		history = history || died(piece[:have])
		have = copy(piece[:], piece[max(0, have-overlap):have])
	}
	return history, nil
}
