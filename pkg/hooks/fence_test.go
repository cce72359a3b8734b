package hooks

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// Deciding what an answer means must stay possible without a process and
// without a network.
func TestImports(t *testing.T) {
	t.Parallel()
	out, err := exec.Command("go", "list", "-deps", ".").Output()
	if err != nil {
		t.Fatal(err)
	}
	banned := map[string]string{
		"net":                                    "hooks that call out are in packages below",
		"net/http":                               "hooks that call out are in packages below",
		"os/exec":                                "hooks that start processes are in packages below",
		"github.com/rabbitmq/amqp091-go":         "a hook sees a Message, not a delivery",
		"github.com/rsctl/rsctl/pkg/spec":        "package settle depends on this one and reads no files",
		"github.com/rsctl/rsctl/pkg/hooks/kinds": "the types do not know their implementations",
	}
	for dep := range strings.FieldsSeq(string(out)) {
		if why, bad := banned[dep]; bad {
			t.Errorf("package hooks depends on %s: %s", dep, why)
		}
	}
}

// What the kinds share knows none of them, and none knows another.
func TestImports_RoomsHaveNoWayBack(t *testing.T) {
	t.Parallel()
	const root = "github.com/rsctl/rsctl/pkg/hooks/"
	kinds := []string{"exec", "worker", "http", "kinds"}
	for room, banned := range map[string][]string{
		"internal/message":        append(kinds, "internal/process"),
		"internal/process":        kinds,
		"exec":                    {"worker", "http", "kinds"},
		"worker":                  {"exec", "http", "kinds"},
		"http":                    {"exec", "worker", "kinds", "internal/process"},
		"http/internal/plainhttp": {"http", "http/internal/transport"},
		"http/internal/transport": {"http", "http/internal/plainhttp"},
		"http/internal/exchange":  {"http", "http/internal/transport", "http/internal/plainhttp"},
	} {
		out, err := exec.Command("go", "list", "-deps", root+room).Output()
		if err != nil {
			t.Fatal(err)
		}
		deps := strings.Fields(string(out))
		for _, b := range append(banned, "internal/hooktest") {
			if slices.Contains(deps, root+b) {
				t.Errorf("%s depends on %s", room, b)
			}
		}
	}
}
