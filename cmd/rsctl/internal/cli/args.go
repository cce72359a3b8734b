package cli

import (
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

const defaultFile = "queues.yaml"

// flagError names the flag that was probably meant.
func flagError(cmd *cobra.Command, err error) error {
	name, unknown := strings.CutPrefix(err.Error(), "unknown flag: --")
	mean := ""
	if unknown {
		var names []string
		cmd.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
		if best := nearest(name, names); best != "" {
			mean = "; did you mean --" + best + "?"
		}
	}
	return usagef(helpHint(cmd), "%v%s", err, mean)
}

func helpHint(cmd *cobra.Command) string { return `see "` + cmd.CommandPath() + ` --help"` }

// noArgs refuses arguments; the commonest one is the spec's name.
func noArgs(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	hint := helpHint(cmd)
	if strings.HasSuffix(args[0], ".yaml") || strings.HasSuffix(args[0], ".yml") {
		hint = "name the spec with -f " + args[0]
	}
	return usagef(hint, "%q takes no arguments, got %q", cmd.CommandPath(), args[0])
}

// between accepts from least to most arguments; what names them.
func between(least, most int, what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) < least:
			return usagef(helpHint(cmd), "%q needs %s", cmd.CommandPath(), what)
		case len(args) > most:
			return usagef(helpHint(cmd), "%q: unexpected argument %q", cmd.CommandPath(), args[most])
		}
		return nil
	}
}

// bindTimeout adds --timeout to a short command.
func bindTimeout(cmd *cobra.Command, limit *time.Duration) {
	cmd.Flags().DurationVar(limit, "timeout", 10*time.Second, "give up after this long; 0 is no limit")
}
