// Package pidone lets rsctl be process 1 of a container.
//
// The kernel hands processes that have lost their parent, as what a handler
// leaves in the background, to process 1, which must wait for them or they stay
// as zombies until no process can be started any more. It also ignores signals
// that process 1 does not handle. Waiting for any child would take the results
// away from the code that has started one; so process 1 starts rsctl a second
// time, as its child, and does nothing but collect, as small inits do.
package pidone

import (
	"os"
	"os/signal"
	"syscall"

	"github.com/rsctl/rsctl/pkg/runtime/threads"
)

// passedOn are the signals that people and supervisors send to a process. A SIGHUP
// that whoever started the process keeps away, as nohup does, is kept from the
// program as well.
func passedOn() []os.Signal {
	all := []os.Signal{syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM, syscall.SIGUSR1, syscall.SIGUSR2}
	if !signal.Ignored(syscall.SIGHUP) {
		all = append(all, syscall.SIGHUP)
	}
	return append(all, alsoPassedOn...)
}

// Run starts the program at path with the arguments argv (its name first), hands
// signals on to it and collects every process that ends meanwhile. It returns
// the program's exit code, or 128 and the number of the signal that has killed
// it, as a shell does. An error means that the program could not be started.
func Run(path string, argv []string) (code int, err error) {
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, passedOn()...)
	defer signal.Stop(signals)
	_ = threads.Reserve(2) // without, it goes on as long as there are threads to be had
	pid, err := start(path, argv)
	if err != nil {
		return 0, err
	}
	done := make(chan struct{})
	defer close(done)
	go forward(signals, pid, done)
	return collect(pid)
}

// start makes the program the leader of a process group, in the foreground of
// the terminal if there is one: a Ctrl-C there must reach it once, not a second
// time through us.
func start(path string, argv []string) (pid int, err error) {
	attr := &syscall.ProcAttr{
		Env: os.Environ(), Files: []uintptr{0, 1, 2},
		Sys: &syscall.SysProcAttr{Foreground: true, Ctty: 0},
	}
	if pid, err = syscall.ForkExec(path, argv, attr); err == nil {
		return pid, nil
	}
	attr.Sys = &syscall.SysProcAttr{Setpgid: true} // there is no terminal
	return syscall.ForkExec(path, argv, attr)
}

func forward(signals <-chan os.Signal, pid int, done <-chan struct{}) {
	for {
		select {
		case <-done:
			return
		case s := <-signals:
			_ = syscall.Kill(pid, s.(syscall.Signal)) // it may have ended just now
		}
	}
}

// collect waits for children until the one with the process id has ended. The
// end of process 1 ends what is left.
func collect(pid int) (code int, err error) {
	for {
		var status syscall.WaitStatus
		switch ended, err := syscall.Wait4(-1, &status, 0, nil); {
		case err == syscall.EINTR:
		case err != nil:
			return 0, os.NewSyscallError("wait4", err)
		case ended == pid && status.Signaled():
			return 128 + int(status.Signal()), nil
		case ended == pid && status.Exited():
			return status.ExitStatus(), nil
		}
	}
}
