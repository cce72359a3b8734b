package e2e

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rsctl/rsctl/e2e/internal/harness"
)

func TestReadmeExampleRunsAsItSays(t *testing.T) {
	t.Parallel()
	text := readme(t)
	b := harness.NewBroker(t)
	file := harness.Spec(t, block(t, text, "yaml"), map[string]string{"reserve.sh": block(t, text, "sh")})
	b.MustRsctl(nil, "-f", file, "validate")
	b.MustRsctl(nil, "-f", file, "apply")
	for id, body := range map[string]string{"good": `{"sku":"A-1"}`, "bad": `{}`} {
		b.Publish("events", "order.new", amqp.Publishing{MessageId: id, Body: []byte(body)})
	}
	b.MustRsctl(nil, "-f", file, "run", "--drain")
	if dead := harness.IDs(b.TakeN("orders.dead", 1)); dead[0] != "bad" {
		t.Errorf("orders.dead holds %q, want the dropped one only", dead)
	}
	if n := b.Ready("orders"); n != 0 {
		t.Errorf("orders still holds %d messages", n)
	}
}

func TestReadmeNamesEveryCommand(t *testing.T) {
	t.Parallel()
	text := readme(t)
	b := harness.NewBroker(t)
	help := b.MustRsctl(nil, "--help").Stdout
	_, list, _ := strings.Cut(help, "Available Commands:\n")
	list, _, _ = strings.Cut(list, "\n\n")
	var missing []string
	for line := range strings.Lines(list) {
		if name := strings.Fields(line)[0]; name != "help" && !strings.Contains(text, "`rsctl "+name) {
			missing = append(missing, name)
		}
	}
	if list == "" || len(missing) > 0 {
		t.Errorf("README.md does not name the commands %q of:\n%s", missing, list)
	}
}

func TestReadmeLinksToFilesThatExist(t *testing.T) {
	t.Parallel()
	links := regexp.MustCompile(`\]\(([^):]+)\)`).FindAllStringSubmatch(readme(t), -1)
	if len(links) == 0 {
		t.Fatal("no links found")
	}
	for _, link := range links {
		if _, err := os.Stat(filepath.Join(harness.Root(t), link[1])); err != nil {
			t.Errorf("README.md: %v", err)
		}
	}
}

func readme(t *testing.T) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(harness.Root(t), "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// block returns the first fenced block of a language.
func block(t *testing.T, text, language string) string {
	t.Helper()
	_, rest, found := strings.Cut(text, "```"+language+"\n")
	code, _, closed := strings.Cut(rest, "```\n")
	if !found || !closed {
		t.Fatalf("no %s block", language)
	}
	return code
}
