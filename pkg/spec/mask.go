package spec

import "strings"

// hidden stands for a secret that is written in the file itself.
const hidden = "***"

// maskURL replaces the password of a URL in s, wherever in s the URL starts. A
// password that is only a reference (${PASS}) is kept, since it gives nothing
// away. The text need not be a valid URL: a password with an unescaped @ or /
// is covered up to the last @, because showing too little does no harm.
func maskURL(s string) string {
	i := strings.Index(s, "://")
	if i < 0 {
		return s
	}
	start := i + len("://")
	end := strings.LastIndexByte(s, '@')
	if end < start {
		return s
	}
	colon := strings.IndexByte(s[start:end], ':')
	if colon < 0 {
		return s
	}
	password := s[start+colon+1 : end]
	if password == "" || onlyReference(password) {
		return s
	}
	return s[:start+colon+1] + hidden + s[end:]
}
