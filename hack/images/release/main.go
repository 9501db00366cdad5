// Command release makes everything that a user installs kube-queue from, and pushes it.
//
// "release make" writes one folder: the images of both programs, the chart as a package and as an
// OCI archive, manifests for kubectl, the binaries of all programs, bills of materials, release
// notes and upgrade notes from CHANGELOG.md, and SHA256SUMS of all of them. It runs the commands
// images and helm, which the Makefile builds.
//
// Builds are reproducible, as those of images: the same commit, version, registry and version of
// Go give the same bytes. The folder is written under another name, and renamed when it is
// complete. An interrupted run leaves the earlier folder unchanged.
//
// The release is made here and not by steps of a CI service, so that anybody can make and compare it, and
// a test can run every step. The plugin's manifest is for an index of krew of its own: the central
// index refuses its name.
//
// "release push" pushes the images and the chart of such a folder to the registry that they were
// made for.
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
	err := start(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
	switch {
	case err == nil, errors.Is(err, flag.ErrHelp):
	case ctx.Err() != nil:
		fmt.Fprintln(os.Stderr, "release: interrupted; no files were changed")
		os.Exit(130)
	default:
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

// start runs one of the two commands. It writes progress to log and the result to out.
func start(ctx context.Context, args []string, in io.Reader, out, log io.Writer) error {
	const usage = "run release make or release push; each has --help"
	if len(args) == 0 {
		return errors.New(usage)
	}
	switch args[0] {
	case "make":
		opts, err := parse(args[1:], log)
		if err != nil {
			return err
		}
		return opts.run(ctx, out, log)
	case "push":
		return startPush(ctx, args[1:], in, out, log)
	}
	return fmt.Errorf("unknown command %q: %s", args[0], usage)
}
