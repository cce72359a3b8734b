// Command rsctl turns one YAML file into RabbitMQ topology and runs hooks on
// the messages that arrive.
package main

import (
	"os"

	"github.com/rsctl/rsctl/cmd/rsctl/internal/cli"
)

func main() {
	os.Exit(cli.Main(os.Args[1:], cli.IO{In: os.Stdin, Out: os.Stdout, Err: os.Stderr}))
}
