//go:build !linux

package kinds

// limitsMode and limited are for tests of limits as Linux has them.
const limitsMode = "RSCTL_TEST_LIMITS"

var limited map[string]func()
