package frames

import (
	"encoding/binary"
	"fmt"
)

// What amqp091-go reads; it ends its connection at anything beyond.
const (
	maxDepth   = 32   // of tables and arrays inside the header table
	maxEntries = 8192 // of one table or array
)

// Property flags of the class basic, in the order of the properties.
const (
	flagContentType     = 1 << 15
	flagContentEncoding = 1 << 14
	flagHeaders         = 1 << 13
	flagDeliveryMode    = 1 << 12
	flagPriority        = 1 << 11
	flagCorrelationID   = 1 << 10
	flagReplyTo         = 1 << 9
	flagExpiration      = 1 << 8
	flagMessageID       = 1 << 7
	flagTimestamp       = 1 << 6
	flagType            = 1 << 5
	flagUserID          = 1 << 4
	flagAppID           = 1 << 3
	flagClusterID       = 1 << 2
	flagsUnknown        = 1<<1 | 1<<0 // the last one announces more flags
)

// contentFixed is the size of what every content header begins with: class,
// weight, body size and property flags.
const contentFixed = 14

// content is what a scan has found in the payload of a content header frame.
type content struct {
	table  [2]int // where the header table begins and ends, its length included, or would
	end    int    // of the properties
	whole  bool   // the properties can be told apart, whatever is in the table
	reason string // why amqp091-go cannot read them; "" when it can
}

// scanContent reads the payload of a content header as amqp091-go does, and more
// strictly: what passes is read to the last byte, by what it says itself.
func scanContent(p []byte) content {
	var c content
	flags := binary.BigEndian.Uint16(p[contentFixed-2:])
	if flags&flagsUnknown != 0 {
		c.reason = "its property flags are not those of AMQP 0-9-1"
		return c
	}
	s := scanner{p: p, at: contentFixed}
	s.texts(flags, flagContentType, flagContentEncoding)
	c.table[0] = s.at
	if flags&flagHeaders != 0 {
		c.reason = scanEntries(s.take(s.long()), 0, true)
	}
	c.table[1] = s.at
	s.bytes(flags, 1, flagDeliveryMode, flagPriority)
	s.texts(flags, flagCorrelationID, flagReplyTo, flagExpiration, flagMessageID)
	s.bytes(flags, 8, flagTimestamp)
	s.texts(flags, flagType, flagUserID, flagAppID, flagClusterID)
	c.end, c.whole = s.at, !s.failed
	if s.failed {
		c.reason = "its properties go beyond their frame"
	}
	return c
}

// scanner walks through p and fails, for good, at what is not there.
type scanner struct {
	p      []byte
	at     int
	failed bool
}

func (s *scanner) take(n int) []byte {
	if s.failed || n < 0 || n > len(s.p)-s.at {
		s.failed = true
		return nil
	}
	s.at += n
	return s.p[s.at-n : s.at]
}

func (s *scanner) short() int {
	if b := s.take(1); b != nil {
		return int(b[0])
	}
	return 0
}

func (s *scanner) long() int {
	if b := s.take(4); b != nil {
		return int(binary.BigEndian.Uint32(b))
	}
	return 0
}

func (s *scanner) texts(flags uint16, which ...uint16) {
	for _, f := range which {
		if flags&f != 0 {
			s.take(s.short())
		}
	}
}

func (s *scanner) bytes(flags uint16, n int, which ...uint16) {
	for _, f := range which {
		if flags&f != 0 {
			s.take(n)
		}
	}
}

const reasonBroken = "its header table is broken"

var (
	reasonDeep = fmt.Sprintf("its headers are nested deeper than %d", maxDepth)
	reasonMany = fmt.Sprintf("a table or array in its headers has more than %d entries", maxEntries)
	reasonType = "a header has a type that AMQP 0-9-1 does not know"
)

// scanEntries says why a table, or an array, whose entries have no names, cannot
// be read; "" when it can.
func scanEntries(p []byte, depth int, named bool) string {
	if depth > maxDepth {
		return reasonDeep
	}
	s := scanner{p: p}
	for n := 0; s.at < len(p); n++ {
		if n == maxEntries {
			return reasonMany
		}
		if named {
			s.take(s.short())
		}
		if reason := s.value(depth); reason != "" {
			return reason
		}
	}
	return ""
}

// value walks over a header value and says why it cannot be read.
func (s *scanner) value(depth int) string {
	kind := s.short()
	if s.failed {
		return reasonBroken
	}
	switch kind {
	case 'V':
	case 't', 'b', 'B':
		s.take(1)
	case 's', 'u':
		s.take(2)
	case 'I', 'i', 'f':
		s.take(4)
	case 'D':
		s.take(5)
	case 'l', 'd', 'T':
		s.take(8)
	case 'S', 'x':
		s.take(s.long())
	case 'F', 'A':
		if reason := scanEntries(s.take(s.long()), depth+1, kind == 'F'); reason != "" {
			return reason
		}
	default:
		return reasonType
	}
	if s.failed {
		return reasonBroken
	}
	return ""
}
