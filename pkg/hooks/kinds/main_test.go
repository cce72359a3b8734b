package kinds

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if mode := os.Getenv(limitsMode); mode != "" {
		limited[mode]()
		return
	}
	goleak.VerifyTestMain(m)
}
