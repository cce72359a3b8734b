package spec

import (
	"fmt"
	"strconv"
	"time"
)

// decoder builds a Spec from nodes that the schema has seen. A value with a
// problem counts as absent, so that one mistake gives one problem.
type decoder struct {
	*parser
	root *node
}

// list returns the items of a sequence, none of anything else.
func list(n *node) []*node {
	if n == nil {
		return nil
	}
	return n.items
}

// fields reads the keys of one mapping.
type fields struct {
	*decoder
	n *node
}

func (d *decoder) fields(n *node) fields { return fields{d, n} }

// scalar returns the sound scalar of a key, or nil.
func (f fields) scalar(key string) *node {
	v := f.n.get(key)
	if v == nil || v.broken || v.kind != scalar {
		return nil
	}
	return v
}

func (f fields) text(key string) string {
	if v := f.scalar(key); v != nil {
		return v.value
	}
	return ""
}

func (f fields) boolean(key string, absent bool) bool {
	v := f.scalar(key)
	if v == nil {
		return absent
	}
	if v.class != classBool {
		f.refuse(v, "value", v.label+" must be true or false", "")
		return absent
	}
	return v.value == "true"
}

func (f fields) integer(key string, absent int) int {
	v := f.scalar(key)
	if v == nil {
		return absent
	}
	i, err := strconv.ParseInt(v.value, 10, 32)
	if v.class != classInt || err != nil {
		f.refuse(v, "value", fmt.Sprintf("%s must be a whole number, got %s", v.label, v.shown()), "")
		return absent
	}
	return int(i)
}

func (f fields) float(key string, absent float64) float64 {
	v := f.scalar(key)
	if v == nil {
		return absent
	}
	x, err := strconv.ParseFloat(v.value, 64)
	if err != nil {
		f.refuse(v, "value", v.label+" must be a number", "")
		return absent
	}
	return x
}

// duration reads a duration above zero.
func (f fields) duration(key string, absent time.Duration) time.Duration {
	v := f.scalar(key)
	if v == nil {
		return absent
	}
	dur, ok := f.durationOf(v)
	if !ok {
		return absent
	}
	if dur == 0 {
		f.refuse(v, "duration", fmt.Sprintf("%s must be longer than 0, got %s", v.label, v.shown()), zeroHint(key))
		return absent
	}
	return dur
}

func zeroHint(key string) string {
	if key == "timeout" {
		return "a handler without a time limit could hold its queue for ever; write a long one, for example 20m"
	}
	return ""
}

// delay reads a duration that may be zero.
func (f fields) delay(key string, absent time.Duration) time.Duration {
	v := f.scalar(key)
	if v == nil {
		return absent
	}
	dur, ok := f.durationOf(v)
	if !ok {
		return absent
	}
	return dur
}

func (d *decoder) durationOf(v *node) (time.Duration, bool) {
	dur, err := ParseDuration(v.value)
	if err == nil {
		return dur, true
	}
	message := fmt.Sprintf("%s must be a duration, got %s", v.label, v.shown())
	if !v.inserted {
		message += ": " + err.Error()
	}
	d.refuse(v, "duration", message, "units are "+durationUnits)
	return 0, false
}

// path resolves a file name against the directory of the spec.
func (f fields) path(key string) string { return f.options.path(f.text(key)) }

// arguments returns the table of a key with typed values: bool, int64, float64,
// string, []any and map[string]any. Each call returns new maps.
func (f fields) arguments(key string) map[string]any {
	v := f.n.get(key)
	if v == nil || v.kind != mapping {
		return nil
	}
	m, _ := argument(v).(map[string]any)
	return m
}

func argument(n *node) any {
	switch n.kind {
	case mapping:
		m := make(map[string]any, len(n.entries))
		for _, e := range n.entries {
			m[e.key] = argument(e.value)
		}
		return m
	case sequence:
		items := make([]any, 0, len(n.items))
		for _, item := range n.items {
			items = append(items, argument(item))
		}
		return items
	}
	return argumentScalar(n)
}

func argumentScalar(n *node) any {
	switch n.class {
	case classBool:
		return n.value == "true"
	case classInt:
		i, _ := parseInt64(n.value)
		return i
	case classFloat:
		x, _ := strconv.ParseFloat(n.value, 64)
		return x
	}
	return n.value
}

func parseInt64(s string) (int64, error) { return strconv.ParseInt(s, 10, 64) }
