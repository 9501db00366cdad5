// Command images builds the programs as static binaries and packs each into one OCI
// image archive for all its platforms, with a bill of materials for every binary. It
// needs Go and the modules: no container daemon, no root, no tool for images.
//
// The same commit built with the same version of Go gives the same bytes. So nothing of
// the machine may get into a file: no path, no clock, no user, no order of a map, no
// setting of Go but those of gobuild.go. All times are that of the commit.
//
// One run writes one folder. Files get their names when all are whole, and SHA256SUMS,
// which lists them, comes last: a run that was stopped leaves what was there before.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := start(ctx, os.Args[1:], os.Stdout, os.Stderr)
	switch {
	case err == nil, errors.Is(err, flag.ErrHelp):
	case ctx.Err() != nil:
		fmt.Fprintln(os.Stderr, "images: stopped; nothing was changed")
		os.Exit(130)
	default:
		fmt.Fprintln(os.Stderr, "images:", err)
		os.Exit(1)
	}
}

// start reads the flags and builds. Progress goes to log, the result to out.
func start(ctx context.Context, args []string, out, log io.Writer) error {
	opts := defaults()
	if err := opts.parse(args, log); err != nil {
		return err
	}
	if err := opts.complete(ctx, os.LookupEnv); err != nil {
		return err
	}
	made, err := produce(ctx, opts, log)
	if err != nil {
		return err
	}
	return report(out, opts, made)
}
