// Command release makes everything that a user installs kube-queue from, and pushes it. It needs
// only Go, the modules and helm: no container daemon, no root, no image tools.
//
// "release images" builds the programs of the images as static binaries, packs each of them into one OCI image archive
// for all platforms, and writes a bill of materials per binary. "release make" adds the other programs, the chart as a
// package and as an OCI archive, manifests for kubectl, release notes and upgrade notes from CHANGELOG.md, and a krew
// manifest of the kubectl plugin. This is for a custom index, because the central index refuses its name. "release
// push" pushes the images and the chart to the registry that they were made for.
//
// This program makes the release, not a CI service, so that anyone can make and compare it, and a test can run every
// step.
//
// Builds are reproducible: the same commit, version, registry and version of Go give the same bytes. So files contain
// nothing from the machine: no path, time, user, map order, or Go setting other than those of gobuild.go. All times
// are the time of the commit.
//
// The output folder is written under another name, and renamed when it is complete. An interrupted
// run leaves the earlier folder unchanged.
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

// start runs one of the commands. It writes progress to log and the result to out.
func start(ctx context.Context, args []string, in io.Reader, out, log io.Writer) error {
	const usage = "run release images, release make or release push; each has --help"
	if len(args) == 0 {
		return errors.New(usage)
	}
	switch args[0] {
	case "images", "make":
		opts, err := parse(ctx, args[0], args[1:], log)
		if err != nil {
			return err
		}
		r := &release{options: opts, log: log}
		if args[0] == "images" {
			return r.makeImages(ctx, out)
		}
		return r.make(ctx, out)
	case "push":
		return push(ctx, args[1:], in, out, log)
	}
	return fmt.Errorf("unknown command %q: %s", args[0], usage)
}
