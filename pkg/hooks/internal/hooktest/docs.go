package hooktest

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Page returns docs/hooks.md.
func Page(t testing.TB) string {
	t.Helper()
	dir, err := os.Getwd()
	for ; err == nil && dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		if text, err := os.ReadFile(filepath.Join(dir, "docs", "hooks.md")); err == nil {
			return string(text)
		}
	}
	t.Fatal("docs/hooks.md is in no folder above this one")
	return ""
}

// Snippets returns the fenced blocks of the page in one language.
func Snippets(t testing.TB, language string) []string {
	t.Helper()
	var out []string
	for _, m := range regexp.MustCompile("(?s)```"+language+"\n(.*?)```").FindAllStringSubmatch(Page(t), -1) {
		out = append(out, m[1])
	}
	if len(out) == 0 {
		t.Fatalf("docs/hooks.md has no %s snippet", language)
	}
	return out
}

// WantOnPage fails when the page lacks one of the texts.
func WantOnPage(t testing.TB, want ...string) {
	t.Helper()
	page := Page(t)
	for _, w := range want {
		if !strings.Contains(page, w) {
			t.Errorf("docs/hooks.md does not say %q", w)
		}
	}
}
