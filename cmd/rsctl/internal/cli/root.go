package cli

import (
	"github.com/spf13/cobra"
)

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
