// Command demo demonstrates kube-queue on a real control plane with simulated nodes: three
// teams share 16 GPUs, borrow, wait, and get back what they have lent. "demo all" demonstrates
// one job of each kind in one quota.
//
// Both start their own cluster in .cluster/demo, install kube-queue as a user would, and check
// the audit log of the API server at the end. The cluster stays up; "demo down" stops it.
//
// Terms. The tour consists of chapters: commands, the states that follow, and why. The show is
// the demo of all kinds, which it shows until all jobs have ended. A row is the visible state of a job
// and its unit, a frame the rows of all jobs at one time, and a story is all frames. An
// endless job runs until it is deleted; the closer deletes it.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"kube-queue.dev/kube-queue/test/audit"
	"kube-queue.dev/kube-queue/test/clustertest"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(run(ctx, os.Args[1:]))
}

const (
	// deadline limits the demo once the cluster is up. The jobs take less than a minute.
	deadline = 5 * time.Minute
	// endlessRunTime is how long an endless job is shown running.
	endlessRunTime = 4 * time.Second
)

func run(ctx context.Context, args []string) int {
	root, err := repository(ctx)
	if err := errors.Join(err, errKinds); err != nil {
		return fail(err)
	}
	environment, what, err := parse(root, args)
	if errors.Is(err, flag.ErrHelp) {
		return 0
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		return 2
	}
	switch what {
	case "down":
		err = environment.down(context.WithoutCancel(ctx))
	case "all":
		err = environment.stopAtTheEnd(ctx, showAll(ctx, environment, all()))
	default:
		err = environment.stopAtTheEnd(ctx, takeTour(ctx, environment))
		if err == nil && ctx.Err() == nil { // an interrupt has stopped the cluster
			environment.sayNext()
		}
	}
	switch {
	case ctx.Err() != nil:
		return 130
	case err != nil:
		return fail(err)
	}
	return 0
}

// parse reads the flags, which are for tests, and the argument.
func parse(root string, args []string) (e *environment, what string, err error) {
	e = newEnvironment(root)
	fs := flag.NewFlagSet("demo", flag.ContinueOnError)
	fs.StringVar(&e.data, "data", e.data, "`folder` of the cluster")
	fs.StringVar(&e.bin, "bin", e.bin, "`folder` of the programs that make builds")
	if err := fs.Parse(args); err != nil {
		return nil, "", err
	}
	switch {
	case fs.NArg() == 0:
		return e, "", nil
	case fs.NArg() == 1 && (fs.Arg(0) == "all" || fs.Arg(0) == "down"):
		return e, fs.Arg(0), nil
	}
	return nil, "", fmt.Errorf("unknown argument %q; known arguments: all, down", fs.Arg(0))
}

// stopAtTheEnd stops the cluster after an interrupt, and explains other errors.
func (e *environment) stopAtTheEnd(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		fmt.Println("\nInterrupted; stopping the cluster. Programs that are built stay, and the next run goes on with the others.")
		return e.down(context.WithoutCancel(ctx))
	}
	if err != nil {
		e.explain(context.WithoutCancel(ctx))
	}
	return err
}

func fail(err error) int {
	fmt.Fprintf(os.Stderr, "\ndemo: FAILED: %v\n", err)
	return 1
}

// showAll runs one job of each kind.
func showAll(ctx context.Context, environment *environment, show show) error {
	jobs, err := jobsIn(environment.root, slices.Concat(show.manifests...))
	if err != nil {
		return err
	}
	operators, err := clustertest.Operators(ctx)
	if err != nil {
		return fmt.Errorf("listing the operators of all kinds: %w", err)
	}
	if err := environment.build(ctx, componentsOf(operators)); err != nil {
		return err
	}
	say("Starting " + show.started)
	fmt.Println(show.note)
	err = environment.up(ctx, "--operators", strings.Join(clustertest.Names(operators), ","), "--pod-run-time", show.podRunTime.String())
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, deadline, errors.New("the demo took longer than "+deadline.String()))
	defer cancel()
	say("Installing kube-queue: CRDs, admission policies, RBAC and the two programs")
	if err := environment.install(ctx, show.extensions); err != nil {
		return err
	}
	say("Applying " + show.applied)
	watcher, err := newWatcher(environment.cluster, jobs)
	if err != nil {
		return err
	}
	if err := environment.apply(ctx, show.manifests...); err != nil {
		return err
	}
	seen, err := watcher.watch(ctx, newScreen(os.Stdout, jobs), newCloser(endlessRunTime, environment.cluster.Kubectl))
	if err != nil {
		return err
	}
	if err := verify(ctx, environment, jobs, seen); err != nil {
		return err
	}
	environment.farewell(show)
	return nil
}

// verify checks that the demo went as expected.
func verify(ctx context.Context, environment *environment, jobs []job, seen story) error {
	if err := errors.Join(seen.endedWell(), seen.someWaited()); err != nil {
		return err
	}
	say("Checking the audit log of the API server")
	log, err := environment.audit(ctx, os.Stdout)
	if err != nil {
		return err
	}
	lives, err := livesOf(log, jobs)
	if err != nil {
		return err
	}
	if err := heldFirst(lives); err != nil {
		return err
	}
	say("Requests, waiting time, run time and API writes of each job")
	writes, err := log.Writes(audit.Options{})
	if err != nil {
		return err
	}
	return printCosts(os.Stdout, jobs, seen, lives, writes.Jobs)
}

// say prints the heading of a part of the demo.
func say(what string) { fmt.Printf("\n== %s\n", what) }
