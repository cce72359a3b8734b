package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// choice is a flag that takes one word of a list.
type choice struct {
	value   string
	allowed []string
}

func (c *choice) String() string { return c.value }

// Type is what the usage text calls the value.
func (c *choice) Type() string { return "word" }

// Set accepts an allowed word and names the nearest one otherwise.
func (c *choice) Set(s string) error {
	if slices.Contains(c.allowed, s) {
		c.value = s
		return nil
	}
	return fmt.Errorf("must be one of %s%s", strings.Join(c.allowed, ", "), didYouMean(s, c.allowed))
}

// complete offers the allowed words to the shell.
func (c *choice) complete(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return c.allowed, cobra.ShellCompDirectiveNoFileComp
}

// didYouMean returns `; did you mean "x"?` for the nearest word, or "".
func didYouMean(got string, words []string) string {
	if best := nearest(got, words); best != "" {
		return fmt.Sprintf("; did you mean %q?", best)
	}
	return ""
}

// nearest returns the word with the smallest edit distance, when it is small
// enough to be a slip of the fingers.
func nearest(got string, words []string) string {
	best, least := "", max(2, len(got)/3)+1
	for _, w := range words {
		if d := distance(strings.ToLower(got), strings.ToLower(w)); d < least {
			best, least = w, d
		}
	}
	return best
}

// distance counts the insertions, deletions, replacements and swaps of
// neighbours that turn a into b.
func distance(a, b string) int {
	x, y := []rune(a), []rune(b)
	rows := make([][]int, len(x)+1)
	for i := range rows {
		rows[i] = make([]int, len(y)+1)
		rows[i][0] = i
	}
	for j := range rows[0] {
		rows[0][j] = j
	}
	for i := 1; i <= len(x); i++ {
		for j := 1; j <= len(y); j++ {
			cost := 1
			if x[i-1] == y[j-1] {
				cost = 0
			}
			rows[i][j] = min(rows[i-1][j]+1, rows[i][j-1]+1, rows[i-1][j-1]+cost)
			if i > 1 && j > 1 && x[i-1] == y[j-2] && x[i-2] == y[j-1] {
				rows[i][j] = min(rows[i][j], rows[i-2][j-2]+1)
			}
		}
	}
	return rows[len(x)][len(y)]
}
