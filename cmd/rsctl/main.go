// Command rsctl turns one YAML file into RabbitMQ topology and runs hooks on
// the messages that arrive.
package main

import (
	"os"

	"github.com/rsctl/rsctl/cmd/rsctl/internal/cli"
	"github.com/rsctl/rsctl/cmd/rsctl/internal/pidone"
)

func main() {
	if os.Getpid() == 1 {
		if code, err := runBelow(); err == nil {
			os.Exit(code)
		} // else rsctl works as process 1, and "run" says what that means
	}
	os.Exit(cli.Main(os.Args[1:], cli.IO{In: os.Stdin, Out: os.Stdout, Err: os.Stderr}))
}

// runBelow leaves the work to a child of this process.
func runBelow() (code int, err error) {
	path, err := os.Executable()
	if err != nil {
		return 0, err
	}
	return pidone.Run(path, os.Args)
}
