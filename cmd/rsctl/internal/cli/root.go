package cli

import (
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

const defaultFile = "queues.yaml"

// newRoot builds the command tree. A new command is one line here.
func newRoot(a *app) *cobra.Command {
	root := &cobra.Command{
		Use:   "rsctl",
		Short: "RabbitMQ topology and consumers from one YAML file",
		Long: `rsctl turns one YAML file into RabbitMQ topology and runs it.

The spec says which queues a service has, how often a message may be tried and
where it goes when it is spent. "rsctl apply" declares the topology, "rsctl run"
consumes, calls your handler (a command, a worker or an HTTP endpoint) and
settles every delivery as the spec says.

Exit codes: 0 done, 1 the answer is no (errors in the spec, failed checks,
conflicts), 2 wrong usage, 3 could not finish (broker unreachable or refusing).`,
		Example: `  rsctl init                 write a starter queues.yaml
  rsctl validate             check it, offline
  rsctl explain              what every outcome of a handler becomes
  rsctl try orders --body x  run a handler once, without a broker
  rsctl apply                declare the topology
  rsctl run                  consume`,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          rootArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cmd.SetOut(a.sys.Err)
			_ = cmd.Help()
			return usagef("", "no command given")
		},
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error { return a.checkGlobals(cmd) },
	}
	root.SetIn(a.sys.In)
	root.SetOut(a.sys.Out)
	root.SetErr(a.sys.Err)
	root.SetFlagErrorFunc(flagError)
	root.SetHelpCommand(newHelp())
	root.Version = readVersion().Version
	root.SetVersionTemplate("rsctl {{.Version}}\n")
	a.bind(root)
	root.AddCommand(
		newInit(a),
		newValidate(a),
		newExplain(a),
		newApply(a),
		newCheck(a),
		newRun(a),
		newPublish(a),
		newRequest(a),
		newTry(a),
		newVersion(a),
		newCompletion(a),
	)
	completeGlobals(a, root)
	return root
}

// rootArgs is reached only when no command has the name that was given.
func rootArgs(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return usagef(`"rsctl --help" lists the commands`, "unknown command %q%s", args[0], didYouMean(args[0], commandNames(cmd)))
}

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
