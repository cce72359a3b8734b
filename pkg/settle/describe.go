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
	case Copy:
		return describeCopy(s)
	case Later:
		return fmt.Sprintf("hold in the process, and after %s %s", s.After, describeCopy(s.Copy))
	case Wait:
		return fmt.Sprintf("keep unsettled for %s", s.For)
	case Pace:
		return fmt.Sprintf("keep unsettled until %s after its arrival", s.Age)
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
