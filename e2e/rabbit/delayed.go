package rabbit

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/rsctl/rsctl/e2e/plugins"
)

// DelayedMessage is the name, in [Options.Plugins], of the stand-in for the
// delayed-message plugin, which no distribution packages. It provides the
// exchange type x-delayed-message; what it holds is lost when the node stops.
const DelayedMessage = "rsctl_delayed_message"

// buildDelayedMessage compiles the stand-in for the node's server and lets the
// server find it.
func (n *native) buildDelayedMessage() error {
	ebin := filepath.Join(n.dir, "plugins", DelayedMessage+"-0.1.0", "ebin")
	if err := os.MkdirAll(ebin, 0o755); err != nil {
		return err
	}
	err := errors.Join(
		os.WriteFile(filepath.Join(ebin, DelayedMessage+".app"), plugins.DelayedMessageApp, 0o644),
		os.WriteFile(filepath.Join(n.dir, DelayedMessage+".erl"), plugins.DelayedMessageSource, 0o644),
	)
	if err != nil {
		return err
	}
	p := n.site.place
	seen := filepath.Join(p.inside(n.site.dir), filepath.Base(n.dir))
	args := []string{"-W0", "-o", seen + strings.TrimPrefix(ebin, n.dir)}
	if strings.HasPrefix(p.version, "3.") {
		args = append(args, "-DSERIES_3")
	}
	env := append(n.site.env(), "ERL_LIBS="+p.plugins)
	cmd := p.command(n.site.dir, env, "erlc", append(args, seen+"/"+DelayedMessage+".erl")...)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("compile %s: %w\n%s", DelayedMessage, err, out)
	}
	n.env = append(n.env, "RABBITMQ_PLUGINS_DIR="+seen+"/plugins:"+p.plugins)
	return nil
}
