package e2e

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/rsctl/rsctl/e2e/internal/harness"
)

var testName = regexp.MustCompile("`((?:Test|Fuzz)[A-Za-z0-9]+)`")

func TestEveryGuaranteeIsHeldByTestsThatExist(t *testing.T) {
	t.Parallel()
	root := harness.Root(t)
	text, err := os.ReadFile(filepath.Join(root, "docs", "guarantees.md"))
	if err != nil {
		t.Fatal(err)
	}
	known := testsUnder(t, root)
	promises := 0
	for line := range strings.Lines(string(text)) {
		if !strings.HasPrefix(line, "- ") {
			continue
		}
		promises++
		names := testName.FindAllStringSubmatch(line, -1)
		if len(names) == 0 {
			t.Errorf("no test holds this: %s", line)
		}
		for _, name := range names {
			if !known[name[1]] {
				t.Errorf("there is no test %s, which is said to hold: %s", name[1], line)
			}
		}
	}
	if promises < 20 {
		t.Errorf("found %d guarantees; has the form of the page changed?", promises)
	}
}

// testsUnder returns the names of all tests of the module.
func testsUnder(t *testing.T, root string) map[string]bool {
	t.Helper()
	declared := regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)[A-Za-z0-9]+)\(`)
	known := map[string]bool{}
	err := filepath.WalkDir(root, func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		source, err := os.ReadFile(path)
		for _, m := range declared.FindAllSubmatch(source, -1) {
			known[string(m[1])] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return known
}
