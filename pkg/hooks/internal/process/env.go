package process

import (
	"slices"
	"strings"

	"github.com/rsctl/rsctl/pkg/spec"
)

// HeaderPrefix begins the variable of a message's header, and OmittedSuffix ends
// that of one that was left out.
const (
	HeaderPrefix  = "RSCTL_HEADER_"
	OmittedSuffix = "_OMITTED"
)

// DeliveryNames are the variables that a delivery sets.
var DeliveryNames = []string{
	"PWD", "RSCTL_QUEUE", "RSCTL_ATTEMPT", "RSCTL_MAX_ATTEMPTS", "RSCTL_REDELIVERED", "RSCTL_EXCHANGE",
	"RSCTL_ROUTING_KEY", "RSCTL_MESSAGE_ID", "RSCTL_CORRELATION_ID", "RSCTL_CONTENT_TYPE",
	"RSCTL_HEADERS_OMITTED", "RSCTL_BATCH_SIZE", "TRACEPARENT", "TRACESTATE",
}

// baseEnv merges the inherited environment with the spec's and returns it with
// the PATH that results. What a delivery sets is removed, so that a hook never
// sees a header of another message: rsctl itself may run inside of a hook.
func baseEnv(inherited []string, own []spec.EnvVar) (env []string, path string) {
	path = DefaultPath
	add := func(name, value string) {
		if slices.Contains(DeliveryNames, name) || slices.Contains(DeliveryNames, strings.TrimSuffix(name, OmittedSuffix)) || strings.HasPrefix(name, HeaderPrefix) || strings.ContainsRune(value, 0) {
			return
		}
		if name == "PATH" {
			path = value
		}
		env = slices.DeleteFunc(env, func(kv string) bool { return strings.HasPrefix(kv, name+"=") })
		env = append(env, name+"="+value)
	}
	for _, kv := range inherited {
		if name, value, ok := strings.Cut(kv, "="); ok && name != "" {
			add(name, value)
		}
	}
	for _, v := range own {
		add(v.Name, v.Value.Value)
	}
	return slices.Clip(env), path
}

// inheritable is what of env a handler may have; only is nil when that is all.
func inheritable(env, only []string) []string {
	if only == nil {
		return env
	}
	var out []string
	for _, kv := range env {
		if name, _, _ := strings.Cut(kv, "="); slices.Contains(only, name) {
			out = append(out, kv)
		}
	}
	return out
}
