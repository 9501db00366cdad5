// Command kubectl-kube_queue is the kubectl plugin "kubectl kube-queue": it shows the queue, explains why a job
// waits, and pauses, unpauses and orders jobs, with the permissions of the caller.
package main

import (
	"context"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"syscall"
	"time"

	"golang.org/x/term"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"kube-queue.dev/kube-queue/pkg/plugin/command"
)

func main() {
	os.Exit(run())
}

func run() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second signal ends the process immediately, for example while it reads its input
	env := command.Environment{
		Streams:  genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr},
		NoColour: os.Getenv("NO_COLOR") != "" || os.Getenv("TERM") == "dumb",
		Now:      time.Now,
		Wait:     wait,
	}
	if out := int(os.Stdout.Fd()); term.IsTerminal(out) {
		env.Terminal, env.Browse = true, browse
		if width, _, err := term.GetSize(out); err == nil {
			env.Width = width
		}
	}
	return command.Run(ctx, env, os.Args[1:])
}

// wait waits for the duration, and reports false if the context ends earlier.
func wait(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// browse opens a link in the user's browser.
func browse(link string) error {
	switch runtime.GOOS {
	case "darwin":
		return exec.Command("open", link).Start()
	case "windows":
		return exec.Command("rundll32", "url.dll,FileProtocolHandler", link).Start()
	default:
		return exec.Command("xdg-open", link).Start()
	}
}
