package replyto_test

import (
	"encoding/base64"
	"errors"
	"strings"
	"testing"

	"github.com/rsctl/rsctl/pkg/replyto"
)

// pid is what RabbitMQ 3.10 to 4.3 put into an address, key what follows it.
const (
	pid = "\x83\x58v\x00\x0ereply@67624612\x00\x00e\x9e\x00\x00\x00\x00k\x0e*\xf3"
	key = "8l+9s9q+ArFKBoCqkPEpnw=="
)

func address(pid, key string) string {
	return "amq.rabbitmq.reply-to." + base64.StdEncoding.EncodeToString([]byte(pid)) + "." + key
}

func TestOnlyAddressesThatTheServerMakesAreDirect(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		address string
		good    bool
	}{
		"RabbitMQ's own":              {address(pid, key), true},
		"a small atom":                {address("\x83\x58w\x08rabbit@h\x00\x00e\x9e\x00\x00\x00\x00k\x0e*\xf3", key), true},
		"an old identifier":           {address("\x83\x67d\x00\x08rabbit@h\x00\x00e\x9e\x00\x00\x00\x00\x01", key), true},
		"the pseudo-queue itself":     {"amq.rabbitmq.reply-to", false},
		"nothing behind the prefix":   {"amq.rabbitmq.reply-to.", false},
		"one part":                    {"amq.rabbitmq.reply-to.nonsense", false},
		"no base64":                   {"amq.rabbitmq.reply-to.!!!!.!!", false},
		"short base64":                {"amq.rabbitmq.reply-to.abcd.abcd", false},
		"three parts":                 {address(pid, key) + ".x", false},
		"no key":                      {address(pid, ""), false},
		"a long key":                  {address(pid, strings.Repeat("AAAA", 40)), false},
		"another term":                {address("\x83\x61\x01", key), false},
		"another version":             {address("\x82"+pid[1:], key), false},
		"a length that does not fit":  {address(strings.Replace(pid, "\x0e", "\x0f", 1), key), false},
		"a length beyond the end":     {address(strings.Replace(pid, "\x00\x0e", "\xff\x0e", 1), key), false},
		"cut off":                     {address(pid[:len(pid)-3], key), false},
		"cut off in the atom":         {address(pid[:5], key), false},
		"cut off before its length":   {address(pid[:3], key), false},
		"followed by more":            {address(pid+"\x01", key), false},
		"an atom that is no node":     {address(strings.Replace(pid, "@", "-", 1), key), false},
		"a line break in the base64":  {address(pid, key[:4]+"\n"+key[4:]), false},
		"the prefix with another end": {"amq.rabbitmq.reply-tox." + base64.StdEncoding.EncodeToString([]byte(pid)) + "." + key, false},
	} {
		err := replyto.Check(tt.address, []string{"*"})
		if good := err == nil; good != tt.good || !good && !errors.Is(err, replyto.ErrForm) || !replyto.Direct(tt.address) {
			t.Errorf("%s: Check(%q) = %v", name, tt.address, err)
		}
	}
}

func TestOtherQueuesNeedAPattern(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		address  string
		patterns []string
		allowed  bool
	}{
		{"amq.gen-7tWdHz08DxG1m_eDZaVK0A", nil, true},
		{"orders.dead", nil, false},
		{"", nil, false},
		{"rpc.a", []string{"rpc.*"}, true},
		{"rpc.a.b", []string{"rpc.*"}, true},
		{"rpc.", []string{"rpc.*"}, true},
		{"rpc", []string{"rpc.*"}, false},
		{"xrpc.a", []string{"rpc.*"}, false},
		{"answers", []string{"rpc.*", "answers"}, true},
		{"answers2", []string{"answers"}, false},
		{"a.1.z", []string{"a.*.z"}, true},
		{"a.z", []string{"a.*.z"}, false},
		{"ab", []string{"ab*b"}, false},
		{"anything", []string{"*"}, true},
		{"a-b-c-d", []string{"a*c*d"}, true},
		{"a-d-c", []string{"a*c*d"}, false},
		{"a?", []string{"a?"}, true},
		{"ab", []string{"a?"}, false},
		{"amq.generous", nil, false},
	} {
		err := replyto.Check(tt.address, tt.patterns)
		if allowed := err == nil; allowed != tt.allowed || !allowed && !errors.Is(err, replyto.ErrNotAllowed) {
			t.Errorf("Check(%q, %q) = %v", tt.address, tt.patterns, err)
		}
	}
}

func FuzzCheck(f *testing.F) {
	f.Add(address(pid, key), "rpc.*")
	f.Fuzz(func(t *testing.T, address, pattern string) {
		_ = replyto.Check(address, []string{pattern}) // must not panic
		if !replyto.Match("*"+address+"*", address) || !replyto.Match(address+"*", address) {
			t.Errorf("%q does not match itself between stars", address)
		}
	})
}
