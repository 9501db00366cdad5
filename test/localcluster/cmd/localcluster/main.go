// Command localcluster builds and runs a real Kubernetes control plane with
// simulated nodes, from Go modules alone. See its --help.
package main

import (
	"os"

	"kube-queue.dev/kube-queue/test/localcluster/internal/cli"
)

func main() {
	os.Exit(cli.Main(os.Args[1:], cli.Surroundings{In: os.Stdin, Out: os.Stdout, Err: os.Stderr}))
}
