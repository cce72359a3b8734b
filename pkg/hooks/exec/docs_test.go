package exec

import (
	"fmt"
	"testing"

	"github.com/rsctl/rsctl/pkg/hooks/internal/hooktest"
	"github.com/rsctl/rsctl/pkg/hooks/internal/process"
)

// The page names every variable, and the limits are the code's.
func TestDocs_NamesAndLimits(t *testing.T) {
	t.Parallel()
	hooktest.WantOnPage(t, process.DeliveryNames...)
	hooktest.WantOnPage(t, process.DefaultPath, process.HeaderPrefix, process.OmittedSuffix, fmt.Sprint(process.DrainFor.Milliseconds(), " ms"))
	for what, bytes := range map[string]int{
		"A value over %d KiB is left out":      maxEnvValue,
		"all headers together over %d KiB.":    maxEnvHeaders,
		"A line is logged up to %d KiB":        process.MaxLine,
		"a stream up to %d KiB":                process.MaxStream,
		"More than one line, more than %d KiB": maxAnswer,
		"Descriptor 4 takes %d KiB for each":   maxAnswer,
	} {
		hooktest.WantOnPage(t, fmt.Sprintf(what, bytes>>10))
	}
}
