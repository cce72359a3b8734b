package cli

import (
	_ "embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/spf13/cobra"
)

//go:embed starter.yaml
var starter string

type initFlags struct{ force bool }

func newInit(a *app) *cobra.Command {
	var f initFlags
	cmd := &cobra.Command{
		Use:   "init [FILE]",
		Short: "Write a commented starter spec",
		Long: `Write a commented starter spec that is valid as it stands.

FILE defaults to what -f says, queues.yaml; "-" prints to standard output. A
file that exists is left alone unless --force is given.`,
		Example: `  rsctl init
  rsctl init deploy/orders.yaml
  rsctl init - | less`,
		Args:              between(0, 1, "at most one file"),
		ValidArgsFunction: completeSpecFiles,
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				args = []string{a.file}
			}
			return initSpec(a, args[0], f)
		},
	}
	cmd.Flags().BoolVar(&f.force, "force", false, "overwrite a file that exists")
	return cmd
}

func initSpec(a *app, path string, f initFlags) error {
	if path == "-" {
		_, err := io.WriteString(a.sys.Out, starter)
		return err
	}
	mode := os.O_WRONLY | os.O_CREATE | os.O_TRUNC
	if !f.force {
		mode = os.O_WRONLY | os.O_CREATE | os.O_EXCL
	}
	err := writeFile(path, mode, starter)
	switch {
	case errors.Is(err, fs.ErrExist):
		return &negative{fmt.Sprintf("%s exists and was left alone", path), "--force overwrites it"}
	case err != nil:
		return &failure{err: fmt.Errorf("cannot write the spec: %w", err)}
	}
	a.stdout().printf("wrote %s; next: rsctl validate, rsctl explain, rsctl apply, rsctl run\n", path)
	return nil
}

func writeFile(path string, mode int, text string) error {
	out, err := os.OpenFile(path, mode, 0o644)
	if err != nil {
		return err
	}
	_, err = out.WriteString(text)
	return errors.Join(err, out.Close())
}
