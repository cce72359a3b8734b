package spec

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Whatever the bytes, Parse returns: either a Spec without errors, or problems
// that each say where they are, what is wrong and which rule says so. The same
// bytes give the same answer.
func FuzzParse(f *testing.F) {
	names, err := filepath.Glob("testdata/*/*.yaml")
	if err != nil || len(names) == 0 {
		f.Fatalf("no seeds: %v", err)
	}
	for _, name := range names {
		f.Add(readFile(f, name))
	}
	f.Add([]byte("a: &a [*a]\nqueues: {<<: *a}"))
	f.Add([]byte("? [x]\n: y\nqueues: [[[{? {}: *b}]]]"))
	documented := documentedRules(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		s, problems := Parse(data, testOptions("q.yaml"))
		if (s == nil) != problems.HasErrors() {
			t.Fatalf("spec %v with problems:\n%s", s, problems)
		}
		for _, p := range problems {
			if p.Message == "" || p.Rule == "" || p.Pos.Line < 1 || p.Pos.Col < 1 {
				t.Errorf("incomplete problem %+v", p)
			}
			if !slices.Contains(documented, p.Rule) {
				t.Errorf("rule %s is not documented", p.Rule)
			}
			if strings.ContainsAny(p.Message, "\n\r") {
				t.Errorf("a message is one line: %q", p.Message)
			}
		}
		if !slices.IsSortedFunc(problems, func(a, b Problem) int { return comparePos(a.Pos, b.Pos) }) {
			t.Errorf("not sorted:\n%s", problems)
		}
		if _, again := Parse(data, testOptions("q.yaml")); !slices.Equal(problems, again) {
			t.Errorf("two runs differ:\n%s\n%s", problems, again)
		}
	})
}

func FuzzExpand(f *testing.F) {
	for _, s := range []string{"", "$", "${", "${}", "$${A}", "$$${A}", "${A:-b}", "${file:x}", "${A:?}", "}${SECRET}{"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got, _, err := testOptions("q").expand(s)
		if err == nil && !strings.Contains(s, "${") && got != s {
			t.Errorf("text without ${ changed: %q became %q", s, got)
		}
		if err != nil && strings.Contains(err.Error(), "hunter2") && !strings.Contains(s, "hunter2") {
			t.Errorf("the error for %q shows a value: %v", s, err)
		}
	})
}

func FuzzMaskURL(f *testing.F) {
	f.Add("u", "p@ss/w")
	f.Fuzz(func(t *testing.T, user, password string) {
		const mark = "zecret"
		if strings.ContainsAny(user, ":@/$") {
			return
		}
		got := maskURL("amqp://" + user + ":" + mark + password + mark + "@h/")
		if strings.Contains(got, mark) {
			t.Errorf("maskURL shows the password: %q", got)
		}
	})
}
