package regular_test

import (
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/rsctl/rsctl/pkg/regular"
)

func TestOnlyRegularFilesOfBoundedSizeAreRead(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	in := func(name string) string { return filepath.Join(dir, name) }
	write := func(name string, size int) string {
		if err := os.WriteFile(in(name), []byte(strings.Repeat("x", size)), 0o600); err != nil {
			t.Fatal(err)
		}
		return in(name)
	}
	write("secret", 8)
	if err := os.Symlink("secret", in("link")); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(in("pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	socket, err := net.Listen("unix", in("socket"))
	if err != nil {
		t.Fatal(err)
	}
	defer socket.Close()
	tests := []struct{ path, want string }{
		{in("secret"), ""},
		{in("link"), ""}, // mounted secrets are links
		{write("full", 16), ""},
		{write("large", 17), "larger than 16 bytes"},
		{dir, "a directory, not a regular file"},
		{in("pipe"), "a pipe, not a regular file"},
		{in("socket"), "a socket, not a regular file"},
		{"/dev/zero", "a device, not a regular file"},
		{in("absent"), "no such file"},
	}
	for _, tt := range tests {
		_, err := regular.Read(tt.path, 16)
		var pe *fs.PathError
		switch {
		case tt.want == "" && err == nil:
		case tt.want == "" || err == nil || !strings.Contains(err.Error(), tt.want) || !errors.As(err, &pe):
			t.Errorf("Read(%s) = %v, want %q as a PathError", tt.path, err, tt.want)
		}
	}
	// A file that says it is empty, as those of /proc do, is bounded all the same.
	if _, err := os.Stat("/proc/self/maps"); err == nil {
		if _, err := regular.Read("/proc/self/maps", 16); err == nil {
			t.Error("a file of unknown size was read beyond the bound")
		}
	}
}
