// Command demo demonstrates kube-queue on a real control plane with simulated nodes: three
// teams share 16 GPUs, borrow, wait, and get back what they have lent.
//
// It starts its own cluster in .cluster/demo, installs kube-queue as a user would, and checks
// the audit log of the API server at the end. The cluster stays up; "demo down" stops it, and "demo pictures" takes the
// pictures of the documentation in it. "demo record" records the metrics for the pictures of the dashboard.
//
// The tour consists of chapters: commands, the states that follow, and why.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"syscall"

	"kube-queue.dev/kube-queue/test/built"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(run(ctx, os.Args[1:]))
}

func run(ctx context.Context, args []string) int {
	root, err := built.Root(ctx)
	if err != nil {
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
	case "pictures":
		err = environment.takePictures(ctx)
	case "record":
		err = environment.stopAtTheEnd(ctx, record(ctx, environment))
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
	case fs.NArg() == 1 && slices.Contains([]string{"down", "pictures", "record"}, fs.Arg(0)):
		return e, fs.Arg(0), nil
	}
	return nil, "", fmt.Errorf("unknown argument %q; known arguments: down, pictures, record", fs.Arg(0))
}

// stopAtTheEnd stops the cluster after an interrupt, and explains other errors.
func (e *environment) stopAtTheEnd(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		fmt.Println("\nInterrupted; stopping the cluster. Finished builds are kept, and the next run continues with the others.")
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

// say prints the heading of a part of the demo.
func say(what string) { fmt.Printf("\n== %s\n", what) }
