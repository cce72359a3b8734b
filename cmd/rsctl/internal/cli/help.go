package cli

import "github.com/spf13/cobra"

// newHelp replaces cobra's help command, which takes an unknown command for a
// success.
func newHelp() *cobra.Command {
	return &cobra.Command{
		Use:   "help [COMMAND]",
		Short: "Help about a command",
		Long:  `Print the same text as "rsctl COMMAND --help".`,
		Example: `  rsctl help
  rsctl help run`,
		Args: between(0, 1, "at most one command"),
		ValidArgsFunction: func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			return commandNames(cmd.Root()), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			found, rest, err := cmd.Root().Find(args)
			if err != nil || len(rest) > 0 {
				return rootArgs(cmd.Root(), args)
			}
			return found.Help()
		},
	}
}

func commandNames(root *cobra.Command) []string {
	var names []string
	for _, c := range root.Commands() {
		if c.IsAvailableCommand() {
			names = append(names, c.Name())
		}
	}
	return names
}
