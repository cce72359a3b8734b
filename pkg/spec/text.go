package spec

import "strings"

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
