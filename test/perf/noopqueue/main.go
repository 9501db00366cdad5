// Command noopqueue is a queue without decisions: it releases every suspended Job with its
// label immediately, in no particular order and without a limit.
//
// It is a baseline for perf. Every queue must at least observe jobs, maintain an object per
// job, release the job and report the release. noopqueue does only that, with as many writes
// as kube-queue needs for a job that does not wait: it creates a ConfigMap, marks it,
// unsuspends the Job, writes an event, and marks the ConfigMap again when the Job has ended.
// With --bare it only makes the one write that every queue needs. It does not tolerate
// failures and has no other purpose.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := run(ctx, os.Args[1:])
	if errors.Is(err, pflag.ErrHelp) {
		return
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "noopqueue:", err)
		stop()
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	flags := pflag.NewFlagSet("noopqueue", pflag.ContinueOnError)
	label := flags.String("label", "", "`KEY=VALUE` of the jobs to release")
	bare := flags.Bool("bare", false, "write only the release")
	workers := flags.Int("workers", 16, "`NUMBER` of jobs processed concurrently")
	if err := flags.Parse(args); err != nil {
		return err
	}
	switch {
	case *label == "":
		return errors.New("--label is required: set it to the KEY=VALUE of the jobs to release")
	case *workers < 1:
		return fmt.Errorf("--workers %d: must be 1 or more", *workers)
	}
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(clientcmd.NewDefaultClientConfigLoadingRules(), nil).ClientConfig()
	if err != nil {
		return fmt.Errorf("reading the kubeconfig of KUBECONFIG: %w", err)
	}
	config.QPS, config.UserAgent = -1, "noopqueue"
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	q := &queue{client: client, label: *label, bare: *bare, released: map[types.UID]bool{}}
	return q.run(ctx, *workers)
}
