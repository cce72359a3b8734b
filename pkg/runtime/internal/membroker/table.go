package membroker

import (
	"encoding/binary"
	"strconv"
)

// table is a field table whose values stay as they came.
type table []field

type field struct {
	key   string
	value []byte // with its type
}

func parseTable(b []byte) table {
	var t table
	for r := (&reader{b}); len(r.b) > 0; {
		key := r.text()
		n := valueSize(r.b)
		t = append(t, field{key, r.take(n)})
	}
	return t
}

// valueSize is how many bytes the value at the beginning of b takes.
func valueSize(b []byte) int {
	if len(b) == 0 {
		return 0
	}
	switch b[0] {
	case 't', 'b', 'B':
		return 2
	case 's', 'u':
		return 3
	case 'I', 'i', 'f':
		return 5
	case 'D':
		return 6
	case 'l', 'd', 'T', 'L':
		return 9
	case 'S', 'A', 'F', 'x':
		if len(b) < 5 {
			return len(b)
		}
		return 5 + int(binary.BigEndian.Uint32(b[1:]))
	}
	return 1 // V
}

func (t table) find(key string) []byte {
	for _, f := range t {
		if f.key == key {
			return f.value
		}
	}
	return nil
}

// text is a string value; "" when there is none.
func (t table) text(key string) string {
	v := t.find(key)
	if len(v) < 5 || v[0] != 'S' {
		return ""
	}
	return string(v[5:])
}

// number is an integer of any size; missing when there is none.
func (t table) number(key string, missing int64) int64 {
	v := t.find(key)
	if len(v) == 0 {
		return missing
	}
	n := (&reader{v[1:]}).uint(len(v) - 1)
	switch v[0] {
	case 'b', 'B':
		return int64(int8(n))
	case 's':
		return int64(int16(n))
	case 'I':
		return int64(int32(n))
	case 'l':
		return int64(n)
	case 'S':
		if n, err := strconv.ParseInt(t.text(key), 10, 64); err == nil {
			return n
		}
	}
	return missing
}

func (t table) isTrue(key string) bool {
	v := t.find(key)
	return len(v) == 2 && v[0] == 't' && v[1] != 0
}

// with returns a copy of t in which key has the value.
func (t table) with(key string, value []byte) table {
	out := make(table, 0, len(t)+1)
	for _, f := range t {
		if f.key != key {
			out = append(out, f)
		}
	}
	return append(out, field{key, value})
}

func (t table) encode() []byte {
	var out arguments
	for _, f := range t {
		out = append(out.text(f.key), f.value...)
	}
	return out
}

func textValue(s string) []byte { return arguments{'S'}.longText(s) }
func intValue(n int64) []byte   { return arguments{'l'}.number(uint64(n)) }
func trueValue() []byte         { return []byte{'t', 1} }
func tableValue(t table) []byte { return arguments{'F'}.longText(string(t.encode())) }

func listValue(values [][]byte) []byte {
	var all []byte
	for _, v := range values {
		all = append(all, v...)
	}
	return arguments{'A'}.longText(string(all))
}
