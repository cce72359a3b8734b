package licenses

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// platforms are those that rsctl may be built for; they link different packages.
var platforms = []string{"linux/amd64", "linux/arm64", "darwin/arm64"}

// licenseFile is a file that has to go along with a module.
var licenseFile = regexp.MustCompile(`(?i)^(licen[cs]e|copying|notice|patents)([.-].*)?$`)

func TestTheLicenceOfEverythingLinkedIsInTheBinary(t *testing.T) {
	t.Parallel()
	want := text(t)
	if os.Getenv("UPDATE") != "" {
		if err := os.WriteFile("THIRD_PARTY_LICENSES", []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if ThirdParty != want {
		t.Error("THIRD_PARTY_LICENSES is not that of the linked modules; run: make licenses")
	}
}

// text is what THIRD_PARTY_LICENSES must be.
func text(t *testing.T) string {
	t.Helper()
	var b strings.Builder
	b.WriteString("rsctl is linked with the Go standard library and the modules below. Their\nlicences and notices follow, each under the module's path and version.\n")
	section(&b, "The Go standard library", read(t, filepath.Join(goroot(t), "LICENSE")))
	modules := linked(t)
	for _, path := range slices.Sorted(maps.Keys(modules)) {
		m := modules[path]
		files := m.files(t)
		if len(files) == 0 {
			t.Errorf("%s has no licence", path)
		}
		for _, name := range files {
			title := path + " " + m.version
			if name != "LICENSE" {
				title += ": " + name
			}
			section(&b, title, read(t, filepath.Join(m.dir, name)))
		}
	}
	return b.String()
}

func section(b *strings.Builder, title, body string) {
	line := strings.Repeat("=", 79)
	fmt.Fprintf(b, "\n%s\n%s\n%s\n\n%s\n", line, title, line, strings.TrimSpace(strings.ReplaceAll(body, "\r\n", "\n")))
}

// module is a linked module and the folders of its packages that are linked.
type module struct {
	version, dir string
	folders      map[string]bool
}

// linked returns the modules that go into rsctl on any of the platforms.
func linked(t *testing.T) map[string]*module {
	t.Helper()
	modules := map[string]*module{}
	for _, platform := range platforms {
		system, machine, _ := strings.Cut(platform, "/")
		cmd := exec.Command("go", "list", "-deps", "-json=Dir,Module", "github.com/rsctl/rsctl/cmd/rsctl")
		cmd.Env = append(os.Environ(), "GOOS="+system, "GOARCH="+machine, "CGO_ENABLED=0")
		out, err := cmd.Output()
		if err != nil {
			t.Fatal(err)
		}
		dec := json.NewDecoder(bytes.NewReader(out))
		for {
			var p struct {
				Dir    string
				Module *struct {
					Path, Version, Dir string
					Main               bool
				}
			}
			if err := dec.Decode(&p); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatal(err)
			}
			if p.Module == nil || p.Module.Main {
				continue
			}
			m := modules[p.Module.Path]
			if m == nil {
				m = &module{version: p.Module.Version, dir: p.Module.Dir, folders: map[string]bool{}}
				modules[p.Module.Path] = m
			}
			m.folders[p.Dir] = true
		}
	}
	return modules
}

// files are the licence files of m and of its linked folders, relative to m.
func (m *module) files(t *testing.T) []string {
	t.Helper()
	found := map[string]bool{}
	for folder := range m.folders {
		for dir := folder; strings.HasPrefix(dir, m.dir); dir = filepath.Dir(dir) {
			entries, err := os.ReadDir(dir)
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range entries {
				if e.IsDir() || !licenseFile.MatchString(e.Name()) || strings.HasSuffix(e.Name(), ".go") {
					continue
				}
				name, err := filepath.Rel(m.dir, filepath.Join(dir, e.Name()))
				if err != nil {
					t.Fatal(err)
				}
				found[filepath.ToSlash(name)] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(found))
}

func goroot(t *testing.T) string {
	t.Helper()
	out, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}

func read(t *testing.T, file string) string {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
