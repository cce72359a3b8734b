package rabbit

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// fakeDocker notes each call and keeps what is copied into the container.
const fakeDocker = `#!/bin/sh
echo "$@" >>"$FAKE_DOCKER/calls"
[ "$1" != cp ] || cp "$2" "$FAKE_DOCKER/"
`

func TestContainerGetsItsSettingsBeforeItStartsAndIsRemovedAtTheEnd(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "docker"), []byte(fakeDocker), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("FAKE_DOCKER", dir)
	t.Setenv("PATH", dir+string(os.PathListSeparator)+os.Getenv("PATH"))

	o := Options{Plugins: []string{"rabbitmq_shovel"}, Config: map[string]string{"consumer_timeout": "5000"}}
	c, err := container{image: "rabbitmq:4.0-management"}.prepare(t.Context(), 1, o)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Nodes[0].engine.start(); err != nil {
		t.Fatal(err)
	}
	if err := c.Stop(); err != nil {
		t.Fatal(err)
	}
	name := strings.TrimPrefix(c.Nodes[0].Name, "rabbit@")
	wantInOrder(t, read(t, dir, "calls"),
		"create --name "+name, "90-rsctl.conf", "enabled_plugins", "start "+name, "rm --force --volumes "+name)
	if got, want := read(t, dir, "90-rsctl.conf"), "consumer_timeout = 5000\n"; got != want {
		t.Errorf("configuration = %q, want %q", got, want)
	}
	if got, want := read(t, dir, "enabled_plugins"), "[rabbitmq_management,rabbitmq_prometheus,rabbitmq_shovel].\n"; got != want {
		t.Errorf("enabled plugins = %q, want %q", got, want)
	}
}

func TestContainerRefusesWhatItCannotDo(t *testing.T) {
	t.Parallel()
	for name, try := range map[string]func() error{
		"a cluster": func() error {
			_, err := container{}.prepare(t.Context(), 3, Options{})
			return err
		},
		"the stand-in plugin": func() error {
			_, err := container{}.prepare(t.Context(), 1, Options{Plugins: []string{DelayedMessage}})
			return err
		},
	} {
		if err := try(); !errors.Is(err, ErrNotInContainer) {
			t.Errorf("%s: %v, want an error that says it does not work in a container", name, err)
		}
	}
}

func read(t *testing.T, dir, name string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// wantInOrder looks for the parts one after the other.
func wantInOrder(t *testing.T, text string, parts ...string) {
	t.Helper()
	rest := text
	for _, part := range parts {
		_, after, found := strings.Cut(rest, part)
		if !found {
			t.Errorf("%q is missing, or not in this place, in:\n%s", part, text)
			return
		}
		rest = after
	}
}
