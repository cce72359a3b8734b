package cli

import (
	"io"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/rsctl/rsctl/cmd/rsctl/internal/licenses"
)

// buildVersion is set by the linker for a release; see the Makefile.
var buildVersion string

// versionJSON is the form of "version --output json".
type versionJSON struct {
	Version  string            `json:"version"`
	Revision string            `json:"revision,omitempty"` // with "-dirty" for a changed tree
	Go       string            `json:"go"`
	Platform string            `json:"platform"`
	Modules  map[string]string `json:"modules"`
}

func newVersion(a *app) *cobra.Command {
	licences := false
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Long: `Print the version of rsctl, of Go and, as JSON, of every module that is built in.
With --licenses, print their licences instead.

The version of the RabbitMQ server is printed by "rsctl check".`,
		Example: `  rsctl version
  rsctl version --output json
  rsctl version --licenses`,
		Annotations: map[string]string{formats: "text json"},
		Args:        noArgs,
		RunE: func(*cobra.Command, []string) error {
			if licences {
				return printLicenses(a)
			}
			return printVersion(a)
		},
	}
	cmd.Flags().BoolVar(&licences, "licenses", false, "print the licences of everything that is built in")
	return cmd
}

func printLicenses(a *app) error {
	_, err := io.WriteString(a.sys.Out, licenses.ThirdParty)
	return err
}

func printVersion(a *app) error {
	v := readVersion()
	if a.output.value == "json" {
		return a.json(v)
	}
	revision := ""
	if v.Revision != "" {
		revision = ", " + v.Revision
	}
	a.stdout().printf("rsctl %s (%s, %s%s)\n", v.Version, v.Go, v.Platform, revision)
	return nil
}

func readVersion() versionJSON {
	v := versionJSON{
		Version: "(devel)", Go: runtime.Version(),
		Platform: runtime.GOOS + "/" + runtime.GOARCH, Modules: map[string]string{},
	}
	if info, ok := debug.ReadBuildInfo(); ok {
		v.fill(info)
	}
	if buildVersion != "" {
		v.Version = buildVersion
	}
	return v
}

func (v *versionJSON) fill(info *debug.BuildInfo) {
	if info.Main.Version != "" {
		v.Version = info.Main.Version
	}
	for _, m := range info.Deps {
		v.Modules[m.Path] = m.Version
	}
	dirty := false
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			v.Revision = s.Value[:min(12, len(s.Value))]
		case "vcs.modified":
			dirty = s.Value == "true"
		}
	}
	if dirty && v.Revision != "" {
		v.Revision += "-dirty"
	}
}
