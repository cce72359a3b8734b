package rabbit

import "errors"

// DelayedMessage is the name of the stand-in for the delayed-message plugin; see
// e2e/plugins.
const DelayedMessage = "rsctl_delayed_message"

func (n *native) buildDelayedMessage() error { return errors.New("TBD") }
