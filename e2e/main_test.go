package e2e

import (
	"os"
	"testing"

	"github.com/rsctl/rsctl/e2e/internal/harness"
)

func TestMain(m *testing.M) { os.Exit(harness.Main(m)) }
