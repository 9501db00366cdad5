// Command demo shows kube-queue at work: on a real control plane with simulated
// nodes, two TFJobs of 3 cpu each queue for a quota of 4 cpu.
//
// It starts a cluster of its own below .cluster/demo, installs kube-queue as a
// user would, applies the manifests and tells what happens until both jobs have
// ended; then it has the audit log of the API server checked. It leaves the
// cluster up to play with. "demo down" stops it.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(run(ctx, os.Args[1:]))
}

// deadline bounds the demo once the cluster is up. The jobs themselves take
// about twenty seconds.
const deadline = 5 * time.Minute

func run(ctx context.Context, args []string) int {
	root, err := repository(ctx)
	if err != nil {
		return fail(err)
	}
	lab := newLab(root)
	switch {
	case len(args) == 1 && args[0] == "down":
		if err := lab.down(context.WithoutCancel(ctx)); err != nil {
			return fail(err)
		}
		return 0
	case len(args) > 0:
		fmt.Fprintf(os.Stderr, "demo: unknown argument %q; known is: down\n", args[0])
		return 2
	}
	err = demo(ctx, lab)
	if ctx.Err() != nil {
		fmt.Println("\nInterrupted; stopping the cluster.")
		if err := lab.down(context.WithoutCancel(ctx)); err != nil {
			fail(err)
		}
		return 130
	}
	if err != nil {
		lab.explain(context.WithoutCancel(ctx))
		return fail(err)
	}
	lab.farewell()
	return 0
}

func fail(err error) int {
	fmt.Fprintf(os.Stderr, "\ndemo: FAILED: %v\n", err)
	return 1
}

func demo(ctx context.Context, lab *lab) error {
	say("Starting a control plane with simulated nodes and the training-operator")
	if err := lab.up(ctx); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, deadline, errors.New("the demo took longer than "+deadline.String()))
	defer cancel()
	say("Installing kube-queue: CRDs, policies, roles and the two programs")
	if err := lab.install(ctx); err != nil {
		return err
	}
	say("Applying a quota of 4 cpu and two TFJobs of 3 cpu each")
	watcher, err := newWatcher(lab.cluster, "default", []string{"job1", "job2"})
	if err != nil {
		return err
	}
	if err := lab.apply(ctx, "quota-tree.yaml", "tfjob-pair.yaml"); err != nil {
		return err
	}
	story, err := watcher.watch(ctx, os.Stdout)
	if err != nil {
		return err
	}
	if err := story.check(); err != nil {
		return err
	}
	say("Having the audit log checked")
	return lab.audit(ctx)
}

// say starts a part of the demo.
func say(what string) { fmt.Printf("\n== %s\n", what) }
