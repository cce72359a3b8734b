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

// onlyReference reports whether s is one ${VAR} or ${file:PATH}, without a
// default that could be the secret.
func onlyReference(s string) bool {
	inner, ok := strings.CutPrefix(s, "${")
	if !ok {
		return false
	}
	inner, ok = strings.CutSuffix(inner, "}")
	return ok && (variable.MatchString(inner) || strings.HasPrefix(inner, "file:") && !strings.ContainsAny(inner, "{}"))
}

// plainText is a Text that is shown as written, URL passwords masked.
func plainText(n *node) Text { return Text{Value: n.value, Source: maskURL(n.text)} }

// secretText is a Text that is shown only when it is nothing but references.
func secretText(n *node) Text {
	if onlyReference(n.text) {
		return Text{Value: n.value, Source: n.text}
	}
	return Text{Value: n.value, Source: hidden}
}

// namesSecret reports whether a variable or header of this name usually holds a
// secret.
func namesSecret(name string) bool {
	name = strings.ToLower(name)
	for _, word := range []string{"auth", "cookie", "key", "pass", "pwd", "secret", "token", "credential"} {
		if strings.Contains(name, word) {
			return true
		}
	}
	return false
}
