// Command demo demonstrates kube-queue on a real control plane with simulated nodes: two
// TFJobs that request 3 cpu each share a quota of 4 cpu. "demo all" demonstrates one job of
// each kind in one quota.
//
// The demo starts its own cluster in .cluster/demo, installs kube-queue as a user would,
// applies the manifests and shows the jobs until all of them have ended. Then it checks the
// audit log of the API server. The cluster stays up; "demo down" stops it.
//
// Terms. A show defines what differs between the demos. A row is the visible state of a job
// and its unit, a frame the rows of all jobs at one time, and a story is all frames. An
// endless job runs until it is deleted; the closer deletes it.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"syscall"
	"time"

	"kube-queue.dev/kube-queue/test/audit"
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
	environment, show := newEnvironment(root), pair()
	switch {
	case len(args) == 1 && args[0] == "down":
		if err := environment.down(context.WithoutCancel(ctx)); err != nil {
			return fail(err)
		}
		return 0
	case len(args) == 1 && args[0] == "all":
		show = all()
	case len(args) > 0:
		fmt.Fprintf(os.Stderr, "demo: unknown argument %q; known arguments: all, down\n", args[0])
		return 2
	}
	err = demo(ctx, environment, show)
	if ctx.Err() != nil {
		fmt.Println("\nInterrupted; stopping the cluster.")
		if err := environment.down(context.WithoutCancel(ctx)); err != nil {
			fail(err)
		}
		return 130
	}
	if err != nil {
		environment.explain(context.WithoutCancel(ctx))
		return fail(err)
	}
	environment.farewell(show)
	return 0
}

func fail(err error) int {
	fmt.Fprintf(os.Stderr, "\ndemo: FAILED: %v\n", err)
	return 1
}

func demo(ctx context.Context, environment *environment, show show) error {
	jobs, err := jobsIn(environment.root, slices.Concat(show.manifests...))
	if err != nil {
		return err
	}
	say("Starting " + show.started)
	if show.note != "" {
		fmt.Println(show.note)
	}
	if err := environment.up(ctx, show); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, deadline, errors.New("the demo took longer than "+deadline.String()))
	defer cancel()
	say("Installing kube-queue: CRDs, admission policies, RBAC and the two programs")
	if err := environment.install(ctx, show); err != nil {
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
	return verify(ctx, environment, show, jobs, seen)
}

// verify checks that the demo went as expected.
func verify(ctx context.Context, environment *environment, show show, jobs []job, seen story) error {
	if err := seen.endedWell(); err != nil {
		return err
	}
	if err := show.check(seen); err != nil {
		return err
	}
	say("Checking the audit log of the API server")
	log, err := environment.audit(ctx)
	if err != nil {
		return err
	}
	lives, err := livesOf(log, jobs)
	if err != nil {
		return err
	}
	if err := show.verify(lives); err != nil {
		return err
	}
	if !show.costs {
		return nil
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
