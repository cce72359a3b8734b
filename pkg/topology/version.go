package topology

import (
	"cmp"
	"math"
	"strconv"
	"strings"
)

// Known reports whether the server's version could be read.
func (s Server) Known() bool {
	_, _, ok := s.release()
	return ok
}

// AtLeast reports whether the server is of release major.minor or newer. An
// unknown version counts as the newest.
func (s Server) AtLeast(major, minor int) bool {
	have, haveMinor, ok := s.release()
	if !ok {
		return true
	}
	return cmp.Or(cmp.Compare(have, major), cmp.Compare(haveMinor, minor)) >= 0
}

// Native reports whether the server can delay the retries of a quorum queue by
// itself. An older one accepts the arguments and ignores them.
func (s Server) Native() bool { return s.AtLeast(4, 3) }

// Major is the number before the first dot; that of an unknown version is larger
// than any.
func (s Server) Major() int {
	major, _, ok := s.release()
	if !ok {
		return math.MaxInt
	}
	return major
}

// DropsReturned reports whether a quorum queue with this delivery limit drops
// every message at its first return although the limit looks like none: -1 on 3.x.
func (s Server) DropsReturned(limit int64) bool { return limit < 0 && !s.unlimitedDeliveries() }

// unlimitedDeliveries reports whether x-delivery-limit: -1 means "no limit": on
// 3.x it means "drop at the first requeue".
func (s Server) unlimitedDeliveries() bool { return s.AtLeast(4, 0) }

// release reads "4.3.6", "4.3.0-rc.1" and "3.10.8+dfsg"; only the first two
// numbers matter.
func (s Server) release() (major, minor int, ok bool) {
	first, rest, found := strings.Cut(s.Version, ".")
	if !found {
		return 0, 0, false
	}
	second, _, _ := strings.Cut(rest, ".")
	if i := strings.IndexFunc(second, func(r rune) bool { return r < '0' || r > '9' }); i >= 0 {
		second = second[:i]
	}
	major, err := strconv.Atoi(first)
	if err != nil {
		return 0, 0, false
	}
	minor, err = strconv.Atoi(second)
	return major, minor, err == nil
}
