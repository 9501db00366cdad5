// Package migration proves that converted setups of Kueue and of ack-kube-queue behave as their own documentation
// promises: their objects are exported from a cluster or read from files, converted with the plugin of kubectl and
// applied, and the same jobs run in the same order.
package migration

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"kube-queue.dev/kube-queue/pkg/plugin/convert"
	"kube-queue.dev/kube-queue/test/clustertest"
	"kube-queue.dev/kube-queue/test/harness"
)

var suite *harness.Suite

// plugin is the name of the program that kubectl runs for kubectl kube-queue.
const plugin = "kubectl-kube_queue"

func TestMain(m *testing.M) {
	if filepath.Base(os.Args[0]) == plugin {
		os.Exit(runPlugin())
	}
	harness.Main(m, clustertest.Options{Nodes: 3, NodeCPU: "32", PodRunTime: harness.UntilFinished}, func(s *harness.Suite) { suite = s })
}

// runPlugin makes the test program the plugin, so that the commands of the documentation run as they are.
func runPlugin() int {
	root := &cobra.Command{Use: plugin, SilenceErrors: true, SilenceUsage: true}
	root.AddCommand(convert.NewCommand(genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr}))
	err := root.Execute()
	var ended *convert.StatusError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &ended):
		if text := ended.Error(); text != "" {
			fmt.Fprintln(os.Stderr, "error: "+text)
		}
		return ended.ExitStatus()
	default:
		fmt.Fprintln(os.Stderr, err)
		return convert.StatusInput
	}
}
