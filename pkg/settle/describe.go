package settle

import (
	"fmt"
	"strings"
	"time"
)

// Describe says in a few words, without a line break, what s does.
func Describe(s Step) string {
	switch s := s.(type) {
	case Ack:
		return "basic.ack"
	case Reject:
		return fmt.Sprintf("basic.reject(requeue=%t)", s.Requeue)
	case HandBack:
		return "basic.nack(requeue=true)"
	case Copy:
		return describeCopy(s)
	case Later:
		return fmt.Sprintf("hold in the process, and after %s %s", inWords(s.After), describeCopy(s.Copy))
	case Wait:
		return fmt.Sprintf("keep unsettled for %s", inWords(s.For))
	case Pace:
		return fmt.Sprintf("keep unsettled until %s after its arrival", inWords(s.Age))
	case Warn:
		return "warning: " + string(s.What)
	}
	return fmt.Sprintf("%T", s)
}

func describeCopy(c Copy) string {
	parts := []string{"copy to " + describeTarget(c.To)}
	if c.To.Expiration > 0 {
		parts = append(parts, "expiration "+inMilliseconds(c.To.Expiration))
	}
	if c.To.XDelay > 0 {
		parts = append(parts, "x-delay "+inMilliseconds(c.To.XDelay))
	}
	if c.Purpose != ForDeadLetter {
		parts = append(parts, "count "+FormatCount(c.Count))
	}
	if c.Bare {
		parts = append(parts, "with no header but the original's")
	}
	return strings.Join(append(parts, "confirmed"), ", ")
}

func describeTarget(t Target) string {
	switch {
	case t.Queue == "":
		return fmt.Sprintf("exchange %s with key %s", t.Exchange, t.Key)
	case t.Exchange == "":
		return t.Queue + " through the default exchange"
	}
	return fmt.Sprintf("%s through exchange %s", t.Queue, t.Exchange)
}

// inMilliseconds rounds up, as copies do: a delay may be longer than asked for.
func inMilliseconds(d time.Duration) string {
	ms := d.Milliseconds()
	if d%time.Millisecond > 0 {
		ms++
	}
	return fmt.Sprintf("%d ms", ms)
}

// inWords writes d as a spec would: "10m" and "3650d", not "10m0s".
func inWords(d time.Duration) string {
	const day = 24 * time.Hour
	if d >= day && d%day == 0 {
		return fmt.Sprintf("%dd", d/day)
	}
	text := d.String()
	for _, zero := range []string{"m0s", "h0m"} {
		if strings.HasSuffix(text, zero) {
			text = text[:len(text)-2]
		}
	}
	return text
}
