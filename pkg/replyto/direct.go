package replyto

import (
	"encoding/base64"
	"encoding/binary"
	"strings"
)

// The tags of Erlang's external term format that a process identifier is made of.
const (
	termVersion   = 131
	tagPid        = 103 // id, serial and one byte of creation
	tagNewPid     = 88  // id, serial and four bytes of creation
	tagAtom       = 100 // two bytes of length
	tagAtomUTF8   = 118 // two bytes of length
	tagSmallAtom8 = 119 // one byte of length
)

// maxKey bounds the key of an address, in bytes; RabbitMQ's have 16.
const maxKey = 64

// madeByServer reports whether an address has the form of those that RabbitMQ
// 3.10 to 4.3 make: a prefix, and in base64 the process identifier of the
// requester's channel and a key. RabbitMQ up to 4.0 closes the connection that
// publishes to one whose identifier it cannot read.
func madeByServer(address string) bool {
	token, ok := strings.CutPrefix(address, directPrefix+".")
	if !ok || strings.ContainsAny(token, "\r\n") { // which the decoder would overlook
		return false
	}
	pid, key, ok := strings.Cut(token, ".")
	if !ok {
		return false
	}
	rawKey, err := base64.StdEncoding.Strict().DecodeString(key)
	if err != nil || len(rawKey) == 0 || len(rawKey) > maxKey {
		return false
	}
	rawPid, err := base64.StdEncoding.Strict().DecodeString(pid)
	return err == nil && isPid(rawPid)
}

// isPid reports whether b is one process identifier and nothing else.
func isPid(b []byte) bool {
	if len(b) < 4 || b[0] != termVersion {
		return false
	}
	var numbers int
	switch b[1] {
	case tagPid:
		numbers = 4 + 4 + 1
	case tagNewPid:
		numbers = 4 + 4 + 4
	default:
		return false
	}
	node, rest := cutAtom(b[2:])
	name, host, ok := strings.Cut(node, "@")
	return ok && name != "" && host != "" && len(rest) == numbers
}

// cutAtom returns the atom that b starts with and what follows; "" when there is
// none.
func cutAtom(b []byte) (string, []byte) {
	var size, head int
	switch {
	case (b[0] == tagAtom || b[0] == tagAtomUTF8) && len(b) >= 3:
		size, head = int(binary.BigEndian.Uint16(b[1:])), 3
	case b[0] == tagSmallAtom8 && len(b) >= 2:
		size, head = int(b[1]), 2
	default:
		return "", nil
	}
	if len(b) < head+size {
		return "", nil
	}
	return string(b[head : head+size]), b[head+size:]
}
