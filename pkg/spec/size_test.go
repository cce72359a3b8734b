package spec

import (
	"strings"
	"testing"
)

func TestParseSize(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int64{
		"1B": 1, "10kB": 10_000, "10MB": 10_000_000, "1.5GB": 1_500_000_000,
		"512KiB": 512 << 10, "256MiB": 256 << 20, "2GiB": 2 << 30, "0.5KiB": 512, "8000000000GB": 8_000_000_000_000_000_000,
	} {
		if got, err := ParseSize(text); err != nil || got != want {
			t.Errorf("%s: %d, %v, want %d", text, got, err, want)
		}
	}
	for text, want := range map[string]string{
		"": "write a number", "10": "missing unit", "10 MB": "without a space", "-1MB": "write a number", "MB": "write a number",
		"10M": `unknown unit "M"`, "10mb": `unknown unit "mb"`, "10KB": `unknown unit "KB"`, "1e3B": "write a number",
		"0MB": "less than one byte", "0.1B": "less than one byte", "9999999999GiB": "larger than",
		"1" + strings.Repeat("0", 400) + "B": "larger than",
	} {
		if got, err := ParseSize(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %d, %v, want an error with %q", text, got, err, want)
		}
	}
}

func TestFormatSizeIsReadAsTheSame(t *testing.T) {
	t.Parallel()
	for n, want := range map[int64]string{
		1: "1B", 1000: "1kB", 1024: "1KiB", 1536: "1536B", 10_000_000: "10MB", 256 << 20: "256MiB", 1_500_000: "1500kB",
	} {
		got := FormatSize(n)
		if back, err := ParseSize(got); got != want || err != nil || back != n {
			t.Errorf("%d: %s, which reads as %d, %v, want %s", n, got, back, err, want)
		}
	}
}
