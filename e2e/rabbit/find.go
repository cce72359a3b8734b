package rabbit

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
)

// suites names the Debian release whose rabbitmq-server package has a series.
var suites = map[string]string{
	"3.10": "bookworm",
	"4.0":  "trixie",
	"4.3":  "forky",
}

// find returns where the series can be had, installing or building it when it
// is not there and that is possible.
func find(ctx context.Context, o Options) (provider, error) {
	if p, ok := placeAt(""); ok && p.is(o.Series) {
		return p, nil
	}
	_, noApt := exec.LookPath("apt-get")
	switch {
	case o.Series == Installed && noApt == nil && os.Geteuid() == 0:
		return installPackage(ctx, o)
	case o.Series != Installed && noApt == nil && mayMount():
		return buildFolder(ctx, o, suites[o.Series])
	case engineAnswers(ctx):
		return container{image: images[o.Series]}, nil
	}
	return nil, errors.New(howTo(o.Series))
}

// mayMount reports whether this process may mount file systems, which entering
// a folder with another release needs: root, and not in a container without
// privileges.
func mayMount() bool {
	cmd := exec.Command("true")
	cmd.SysProcAttr = ownMounts()
	return runtime.GOOS == "linux" && os.Geteuid() == 0 && cmd.Run() == nil
}

// cached returns a folder built earlier.
func cached(series string) (place, bool) {
	dir, err := cacheDir()
	if err != nil {
		return place{}, false
	}
	p, ok := placeAt(filepath.Join(dir, suites[series]))
	return p, ok && p.is(series)
}

func howTo(series string) string {
	return fmt.Sprintf(`no RabbitMQ (%s) on this machine, and it cannot be installed from here. Do one of these:
  - install a server of that series: apt-get install --no-install-recommends rabbitmq-server, or your system's package
  - run this as root on Debian, and if in a container then in a privileged one; it is then installed by itself
  - start a container engine (docker or podman with its docker command)
  - set RSCTL_AMQP_URL and RSCTL_MANAGEMENT_URL to a RabbitMQ that may be used for tests`, series)
}
