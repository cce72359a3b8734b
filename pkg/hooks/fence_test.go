package hooks

import (
	"os/exec"
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
		"net":                                    "hooks that call out are in package kinds",
		"net/http":                               "hooks that call out are in package kinds",
		"os/exec":                                "hooks that start processes are in package kinds",
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
