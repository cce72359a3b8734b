package topology

import (
	"github.com/rsctl/rsctl/pkg/settle"
	"github.com/rsctl/rsctl/pkg/spec"
)

// timer holds the copy in the process: nothing exists on the broker, and a
// process that dies loses the copy.
type timer struct{}

func (timer) needs(*spec.Queue) fragment { return fragment{} }

func (timer) delay(*spec.Queue) settle.Delay { return settle.Delay{Mode: settle.ModeTimer} }
