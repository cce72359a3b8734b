package cli

import "github.com/spf13/cobra"

var shells = []string{"bash", "zsh", "fish", "powershell"}

func newCompletion(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "completion bash|zsh|fish|powershell",
		Short: "Print a shell completion script",
		Long: `Print a script that completes commands, flags and the names of the spec's queues.

The script goes to standard output; load it where your shell looks for such
scripts.`,
		Example: `  source <(rsctl completion bash)
  rsctl completion zsh > "${fpath[1]}/_rsctl"
  rsctl completion fish > ~/.config/fish/completions/rsctl.fish`,
		Args:              between(1, 1, "a shell: bash, zsh, fish or powershell"),
		ValidArgsFunction: cobra.FixedCompletions(shells, cobra.ShellCompDirectiveNoFileComp),
		RunE: func(cmd *cobra.Command, args []string) error {
			return completion(a, cmd.Root(), args[0])
		},
	}
}

func completion(a *app, root *cobra.Command, shell string) error {
	switch shell {
	case "bash":
		return root.GenBashCompletionV2(a.sys.Out, true)
	case "zsh":
		return root.GenZshCompletion(a.sys.Out)
	case "fish":
		return root.GenFishCompletion(a.sys.Out, true)
	case "powershell":
		return root.GenPowerShellCompletionWithDesc(a.sys.Out)
	}
	return usagef("bash, zsh, fish and powershell are known", "unknown shell %q%s", shell, didYouMean(shell, shells))
}

// completeGlobals registers what the shell offers for the global flags.
func completeGlobals(a *app, root *cobra.Command) {
	complete(root, "output", func(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
		return formatsOf(cmd), cobra.ShellCompDirectiveNoFileComp
	})
	complete(root, "color", a.color.complete)
	complete(root, "file", completeSpecFiles)
	complete(root, "url", cobra.NoFileCompletions)
	complete(root, "management-url", cobra.NoFileCompletions)
}

// complete registers the completion of one flag. The only error there is, a flag
// that does not exist, is found by a test.
func complete(cmd *cobra.Command, flag string, words cobra.CompletionFunc) {
	_ = cmd.RegisterFlagCompletionFunc(flag, words)
}

func completeSpecFiles(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return []string{"yaml", "yml"}, cobra.ShellCompDirectiveFilterFileExt
}

// completeQueues offers the queues of the spec; a spec with errors offers none.
func (a *app) completeQueues(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	s, _, err := a.parse(a.file)
	if err != nil || s == nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var names []string
	for _, q := range s.Queues {
		names = append(names, q.Name)
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

// firstQueue completes one queue name as the first argument.
func (a *app) firstQueue(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return a.completeQueues(cmd, args, typed)
}
