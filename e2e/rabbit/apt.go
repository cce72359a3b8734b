package rabbit

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"strings"
)

// installPackage installs this machine's rabbitmq-server without starting its
// service.
func installPackage(ctx context.Context, o Options) (place, error) {
	o.progress("installing the rabbitmq-server package (once)")
	if err := aptInstall(ctx, "rabbitmq-server"); err != nil {
		return place{}, err
	}
	p, ok := placeAt("")
	if !ok {
		return place{}, errors.New("the rabbitmq-server package is installed, but no rabbitmq-server was found in its usual places")
	}
	return p, nil
}

// aptInstall installs packages, refreshing the lists only when it has to.
func aptInstall(ctx context.Context, packages ...string) error {
	allow, err := forbidServices()
	if err != nil {
		return err
	}
	defer allow()
	args := append([]string{"install", "-y", "-q", "--no-install-recommends"}, packages...)
	if run(ctx, "apt-get", args...) == nil {
		return nil
	}
	if err := run(ctx, "apt-get", "update", "-q"); err != nil {
		return err
	}
	return run(ctx, "apt-get", args...)
}

// forbidServices keeps a package from starting its service, which would take
// the default ports. It returns what undoes it.
func forbidServices() (func(), error) {
	const policy = "/usr/sbin/policy-rc.d"
	f, err := os.OpenFile(policy, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o755)
	if errors.Is(err, fs.ErrExist) {
		return func() {}, nil // the machine has a policy of its own
	}
	if err != nil {
		return nil, err
	}
	_, err = f.WriteString("#!/bin/sh\nexit 101\n")
	if err := errors.Join(err, f.Close()); err != nil {
		return nil, err
	}
	return func() { os.Remove(policy) }, nil
}

// run runs a program silently; its output is part of the error.
func run(ctx context.Context, name string, args ...string) error {
	return runCmd(exec.CommandContext(ctx, name, args...))
}

func runCmd(cmd *exec.Cmd) error {
	cmd.Env = append(cmd.Environ(), "DEBIAN_FRONTEND=noninteractive", "LC_ALL=C.UTF-8")
	out, err := cmd.CombinedOutput()
	if err != nil {
		lines := strings.Split(string(bytes.TrimSpace(out)), "\n")
		tail := strings.Join(lines[max(0, len(lines)-15):], "\n")
		return fmt.Errorf("%s: %w\n%s", strings.Join(cmd.Args, " "), err, tail)
	}
	return nil
}

// mirror returns the package archive that apt is configured to use, which also
// holds the other releases. RSCTL_E2E_MIRROR overrides it.
func mirror(ctx context.Context) (string, error) {
	if m := os.Getenv("RSCTL_E2E_MIRROR"); m != "" {
		return m, nil
	}
	out, err := exec.CommandContext(ctx, "apt-get", "indextargets", "--format", "$(SITE) $(RELEASE)", "Created-By: Packages").Output()
	if err != nil {
		return "", fmt.Errorf("ask apt for its archive: %w", err)
	}
	for line := range strings.Lines(string(out)) {
		site, release, _ := strings.Cut(strings.TrimSpace(line), " ")
		if site != "" && !strings.Contains(site, "security") && !strings.Contains(release, "security") {
			return site, nil
		}
	}
	return "", errors.New("apt names no package archive: set RSCTL_E2E_MIRROR to the URL of a Debian archive")
}
