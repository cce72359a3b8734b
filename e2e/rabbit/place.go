package rabbit

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// A provider makes nodes that are not started yet.
type provider interface {
	prepare(ctx context.Context, n int, o Options) (*Cluster, error)
}

// A place is a file system with RabbitMQ in it: this machine (root "") or a
// debootstrap folder.
type place struct {
	root    string
	bin     string // folder of rabbitmq-server and rabbitmqctl, as seen inside
	version string // "4.0.5"; empty when the layout does not tell
	plugins string // folder of the server's own plugins, as seen inside
}

// inRoot enters a debootstrap folder. The process has a mount table of its own,
// so nothing has to be unmounted. $2 is the node's folder, seen as /mnt.
const inRoot = `root=$1; dir=$2; shift 2
mount -t proc proc "$root/proc"
mount --bind /dev "$root/dev"
mount --bind "$dir" "$root/mnt"
exec chroot "$root" "$@"`

// command runs a program of the place, in a process group of its own, with
// exactly env.
func (p place) command(dir string, env []string, name string, args ...string) *exec.Cmd {
	var cmd *exec.Cmd
	if p.root == "" {
		cmd = exec.Command(name, args...)
		cmd.SysProcAttr = ownGroup()
	} else {
		args = append([]string{"-ec", inRoot, "in-root", p.root, dir, name}, args...)
		cmd = exec.Command("/bin/sh", args...)
		cmd.SysProcAttr = ownMounts()
	}
	cmd.Env, cmd.Dir = env, "/"
	return cmd
}

// inside returns how the programs of the place see the node's folder.
func (p place) inside(dir string) string {
	if p.root == "" {
		return dir
	}
	return "/mnt"
}

// placeAt looks for RabbitMQ under root.
func placeAt(root string) (place, bool) {
	bins := []string{
		"/usr/lib/rabbitmq/bin",
		"/usr/lib/rabbitmq/lib/rabbitmq_server-*/sbin",
		"/opt/homebrew/opt/rabbitmq/sbin",
		"/usr/local/opt/rabbitmq/sbin",
	}
	for _, pattern := range bins {
		servers, _ := filepath.Glob(root + pattern + "/rabbitmq-server")
		if len(servers) == 0 {
			continue
		}
		p := place{root: root, bin: strings.TrimPrefix(filepath.Dir(servers[0]), root)}
		p.findPlugins()
		return p, true
	}
	return place{}, false
}

// findPlugins fills version and plugins from the folder of the rabbit
// application.
func (p *place) findPlugins() {
	up := filepath.Dir(p.bin)
	for _, pattern := range []string{up + "/lib/rabbitmq_server-*/plugins", up + "/plugins"} {
		apps, _ := filepath.Glob(p.root + pattern + "/rabbit-[0-9]*")
		if len(apps) == 0 {
			continue
		}
		dir, app := filepath.Split(apps[0])
		p.plugins = strings.TrimPrefix(filepath.Clean(dir), p.root)
		p.version = strings.TrimSuffix(strings.TrimPrefix(app, "rabbit-"), ".ez")
		return
	}
}

// is reports whether the place holds the series.
func (p place) is(series string) bool {
	return series == Installed || strings.HasPrefix(p.version, series+".")
}

// epmd returns the port mapper's path inside the place.
func (p place) epmd() (string, error) {
	for _, pattern := range []string{
		"/usr/bin/epmd", "/usr/lib*/erlang/bin/epmd", "/usr/lib*/erlang/erts-*/bin/epmd",
		"/opt/homebrew/bin/epmd", "/usr/local/bin/epmd",
	} {
		if found, _ := filepath.Glob(p.root + pattern); len(found) > 0 {
			return strings.TrimPrefix(found[0], p.root), nil
		}
	}
	return "", fmt.Errorf("no epmd under %q: Erlang is not complete", p.root+"/")
}

// cacheDir is where debootstrap folders are kept between runs.
func cacheDir() (string, error) {
	if dir := os.Getenv("RSCTL_E2E_CACHE"); dir != "" {
		return filepath.Abs(dir)
	}
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("%w; set RSCTL_E2E_CACHE to a folder for RabbitMQ installations", err)
	}
	return filepath.Join(dir, "rsctl-e2e"), nil
}
