package topology

import (
	"maps"
	"math"
)

// normalize returns a deep copy of args whose integers are all int64: a Go int
// goes out as 32 bits with amqp091-go, and a limit of 5 GiB would silently
// become 1 GiB. A nil map stays nil.
func normalize(args map[string]any) map[string]any {
	if args == nil {
		return nil
	}
	out := make(map[string]any, len(args))
	for k, v := range args {
		out[k] = normalizeValue(v)
	}
	return out
}

func normalizeValue(v any) any {
	switch v := v.(type) {
	case map[string]any:
		return normalize(v)
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = normalizeValue(v[i])
		}
		return out
	case int:
		return int64(v)
	case int8:
		return int64(v)
	case int16:
		return int64(v)
	case int32:
		return int64(v)
	case uint8:
		return int64(v)
	case uint16:
		return int64(v)
	case uint32:
		return int64(v)
	case uint:
		return int64(min(uint64(v), math.MaxInt64))
	case uint64:
		return int64(min(v, math.MaxInt64))
	case float32:
		return float64(v)
	default:
		return v
	}
}

// with returns args with more set on top; neither is changed.
func with(args, more map[string]any) map[string]any {
	out := maps.Clone(args)
	if out == nil {
		out = make(map[string]any, len(more))
	}
	maps.Copy(out, more)
	return out
}
