package topology

import (
	"github.com/rsctl/rsctl/pkg/settle"
	"github.com/rsctl/rsctl/pkg/spec"
)

// hold keeps the original unacknowledged in the process. Nothing can be lost;
// each held message takes a prefetch slot, and the server's consumer timeout
// (30 minutes by default) bounds the delay.
type hold struct{}

func (hold) needs(*spec.Queue) fragment { return fragment{} }

func (hold) delay(*spec.Queue) settle.Delay { return settle.Delay{Mode: settle.ModeHold} }
