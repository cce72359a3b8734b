package worker

import (
	"fmt"
	"testing"

	"github.com/rsctl/rsctl/pkg/hooks/internal/hooktest"
	"github.com/rsctl/rsctl/pkg/hooks/internal/message"
	"github.com/rsctl/rsctl/pkg/hooks/internal/process"
)

func TestDocs_Limits(t *testing.T) {
	t.Parallel()
	hooktest.WantOnPage(t,
		fmt.Sprint("at most ", message.MaxAnswerLine>>20, " MiB"),
		fmt.Sprint("begins at ", backoffMin.Milliseconds(), " ms"),
		fmt.Sprint("up to ", backoffMax.Seconds(), " s"),
		fmt.Sprintf("a process may have %d KiB logged", process.MaxStream>>10))
}
