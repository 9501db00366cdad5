// Command images builds the programs as static binaries and packs each program into one OCI
// image archive for all platforms, with a bill of materials per binary. It needs only Go and
// the modules: no container daemon, no root, no image tools.
//
// Builds are reproducible: the same commit built with the same version of Go gives the same
// bytes. Files therefore contain nothing of the machine: no path, time, user, map order, or
// Go setting other than those of gobuild.go. All times are the time of the commit.
//
// One run writes one folder. Files are renamed to their final names when all of them are
// complete, and SHA256SUMS, which lists them, is written last. An interrupted run leaves the
// earlier files unchanged.
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
		fmt.Fprintln(os.Stderr, "images: interrupted; no files were changed")
		os.Exit(130)
	default:
		fmt.Fprintln(os.Stderr, "images:", err)
		os.Exit(1)
	}
}

// start reads the flags and builds. It writes progress to log and the result to out.
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
