package rabbit

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
)

// buildFolder returns the cached folder of a Debian release with RabbitMQ in
// it, building it on first use (about 40 s and 400 MB).
func buildFolder(ctx context.Context, o Options, suite string) (place, error) {
	if p, ok := cached(o.Series); ok {
		return p, nil
	}
	cache, err := cacheDir()
	if err != nil {
		return place{}, err
	}
	unlock, err := lock(cache, suite)
	if err != nil {
		return place{}, err
	}
	defer unlock()
	if p, ok := cached(o.Series); ok {
		return p, nil // another process was faster
	}
	o.progress("building a folder with RabbitMQ %s from Debian %s (once, about a minute)", o.Series, suite)
	if err := debootstrap(ctx, cache, suite); err != nil {
		return place{}, err
	}
	p, ok := placeAt(filepath.Join(cache, suite))
	if !ok || !p.is(o.Series) {
		return place{}, fmt.Errorf("the rabbitmq-server package of Debian %s is %q now, not %s", suite, p.version, o.Series)
	}
	return p, nil
}

// lock keeps two processes from building the same folder at once.
func lock(cache, suite string) (func(), error) {
	if err := os.MkdirAll(cache, 0o755); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(filepath.Join(cache, "."+suite+".lock"), os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return func() { f.Close() }, nil
}

// debootstrap builds under a temporary name and renames at the end, so that a
// folder with its real name is always complete. The caller holds the lock.
func debootstrap(ctx context.Context, cache, suite string) error {
	if _, err := exec.LookPath("debootstrap"); err != nil {
		if err := aptInstall(ctx, "debootstrap"); err != nil {
			return err
		}
	}
	archive, err := mirror(ctx)
	if err != nil {
		return err
	}
	building := filepath.Join(cache, "."+suite+".part")
	if err := os.RemoveAll(building); err != nil { // of a run that was killed
		return err
	}
	args := []string{"--variant=minbase", "--include=rabbitmq-server,ca-certificates,procps", suite, building, archive}
	cmd := exec.CommandContext(ctx, "debootstrap", append(args, suiteScript(suite)...)...)
	cmd.SysProcAttr = ownMounts()
	if err := runCmd(cmd); err != nil {
		return errors.Join(err, os.RemoveAll(building))
	}
	if err := prepareFolder(building); err != nil {
		return err
	}
	return os.Rename(building, filepath.Join(cache, suite))
}

// suiteScript names the script for a release that this debootstrap is too old
// to know.
func suiteScript(suite string) []string {
	const scripts = "/usr/share/debootstrap/scripts/"
	if _, err := os.Stat(scripts + suite); errors.Is(err, fs.ErrNotExist) {
		return []string{scripts + "sid"}
	}
	return nil
}

// prepareFolder makes localhost known (without it Erlang finds no epmd) and
// drops the downloaded packages.
func prepareFolder(root string) error {
	hosts := "127.0.0.1 localhost\n::1 localhost ip6-localhost\n"
	if name, err := os.Hostname(); err == nil && !strings.ContainsAny(name, " \n") {
		hosts += "127.0.1.1 " + name + "\n"
	}
	if err := os.WriteFile(filepath.Join(root, "etc/hosts"), []byte(hosts), 0o644); err != nil {
		return err
	}
	debs, _ := filepath.Glob(filepath.Join(root, "var/cache/apt/archives/*.deb"))
	for _, deb := range debs {
		if err := os.Remove(deb); err != nil {
			return err
		}
	}
	return nil
}
