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
	if canInstall() {
		return install(ctx, o)
	}
	if p, ok := cached(o.Series); ok && os.Geteuid() == 0 {
		return p, nil
	}
	if engineAnswers(ctx) {
		return container{image: imageOf(o.Series)}, nil
	}
	return nil, errors.New(howTo(o.Series))
}

// install gets the machine's own package, or a folder with another release's.
func install(ctx context.Context, o Options) (provider, error) {
	if o.Series == Installed {
		return installPackage(ctx, o)
	}
	return buildFolder(ctx, o, suites[o.Series])
}

// cached returns a folder built earlier.
func cached(series string) (place, bool) {
	dir, err := cacheDir()
	if err != nil || suites[series] == "" {
		return place{}, false
	}
	p, ok := placeAt(filepath.Join(dir, suites[series]))
	return p, ok && p.is(series)
}

// canInstall reports whether this is root on a machine with apt.
func canInstall() bool {
	_, err := exec.LookPath("apt-get")
	return err == nil && runtime.GOOS == "linux" && os.Geteuid() == 0
}

func howTo(series string) string {
	return fmt.Sprintf(`no RabbitMQ %s on this machine, and it cannot be installed from here. Do one of these:
  - install it: apt-get install --no-install-recommends rabbitmq-server (or your system's package)
  - run this as root on Debian or Ubuntu; it is then installed by itself
  - start a container engine (docker or podman with its docker command)
  - set RSCTL_AMQP_URL and RSCTL_MANAGEMENT_URL to a RabbitMQ that may be used for tests`, series)
}
