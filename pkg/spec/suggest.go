package spec

import (
	"slices"
	"strings"
)

// nearest returns the candidate that word was probably meant to be, or "".
func nearest(word string, candidates []string) string {
	const maxWord = 64 // longer words are no typing mistakes
	if len(word) > maxWord {
		return ""
	}
	best, bestAt := "", max(len(word)/3, 1)
	if i := slices.IndexFunc(candidates, func(c string) bool { return len(word) > 2 && strings.HasPrefix(c, word) && c != word }); i >= 0 {
		return candidates[i] // begun and not finished: dlx, plugin, max
	}
	for _, c := range candidates {
		if d := distance(strings.ToLower(word), c); d <= min(bestAt, 3) && (best == "" || d < bestAt) {
			best, bestAt = c, d
		}
	}
	return best
}

// distance counts the letters to insert, delete, change or swap.
func distance(a, b string) int {
	two, one := make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range one {
		one[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row := make([]int, len(b)+1)
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(one[j]+1, row[j-1]+1, one[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], two[j-2]+1)
			}
		}
		two, one = one, row
	}
	return one[len(b)]
}
