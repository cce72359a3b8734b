package spec

import (
	"fmt"
	"strings"
)

// suggestion is a hint: the word that was probably meant, the place where the
// word belongs, or all words that are allowed.
func suggestion(word string, allowed []string) string {
	if near := nearest(word, allowed); near != "" {
		return fmt.Sprintf("did you mean %q?", near)
	}
	if place := home(word); place != "" {
		return fmt.Sprintf("%s belongs %s", word, place)
	}
	return "allowed here: " + strings.Join(allowed, ", ")
}

// home says where a key belongs that stands in the wrong mapping.
func home(word string) string {
	if document().known(word) {
		return "at the top of the file"
	}
	for _, place := range []struct{ def, name string }{
		{"queue", "under an item of queues"}, {"handler", "under handler"}, {"delayObject", "under delay"},
		{"backoffObject", "under backoff"}, {"broker", "under broker"}, {"batch", "under batch"},
		{"breaker", "under breaker"}, {"consumer", "under consumer"}, {"binding", "under an item of bindings"},
		{"retryPublisher", "under retry_publisher"}, {"tls", "under tls"},
	} {
		if document().at([]string{"$defs", place.def}).known(word) {
			return place.name
		}
	}
	return ""
}
