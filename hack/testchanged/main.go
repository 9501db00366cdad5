// Command testchanged runs the tests that a change can break: the unit tests of all packages that changed, that import
// a changed one, or whose tests read a changed file. Then, as long as the budget lasts, it runs the tests with a
// cluster that rules.go names. It leaves all others to make test.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"time"
)

// budget is the time by which tests with a cluster must end.
const budget = 5 * time.Minute

var base = flag.String("base", "main", "branch or commit; what changed since HEAD left it is tested")

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	flag.Parse()
	if err := run(ctx, time.Now()); err != nil {
		fmt.Fprintln(os.Stderr, "testchanged:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, started time.Time) error {
	if flag.NArg() == 0 {
		return errors.New("the packages with unit tests are missing; run make test-changed")
	}
	files, since, err := changedFiles(ctx)
	if err != nil {
		return err
	}
	packages, listErr := output(ctx, "go", "list", "-test", "-f", listFormat, "./...")
	units, unitErr := output(ctx, append([]string{"go", "list"}, flag.Args()...)...)
	if err := errors.Join(listErr, unitErr); err != nil {
		return err
	}
	fmt.Printf("%d files changed since %s\n", len(files), since)
	g, unit := parse(packages), strings.Fields(strings.ReplaceAll(units, module, ""))
	c := g.changeOf(files)
	folders, why := g.broken(c, unit, reads)
	command := "go test"
	for _, folder := range folders {
		command += " ./" + folder
		fmt.Printf("  %s (%s)\n", folder, why[folder])
	}
	steps := g.steps(c, unit)
	for _, s := range steps {
		fmt.Printf("  go test %s (about %d s, if the time suffices)\n", s.args, s.seconds)
	}
	if len(folders) > 0 {
		err = execute(ctx, command)
	}
	if err == nil { // no clusters after a failed unit test
		err = runSteps(ctx, steps, started.Add(budget))
	}
	result := "passed"
	if err != nil {
		result = "FAILED"
	}
	fmt.Printf("%s in %v\n", result, time.Since(started).Round(time.Second))
	return err
}

// changedFiles returns the files that changed since HEAD branched off the base, including uncommitted files. If HEAD
// is in the base, it returns the uncommitted files or, if there are none, those of the last commit.
func changedFiles(ctx context.Context) (files []string, since string, err error) {
	if _, err := output(ctx, "git", "rev-parse"); err != nil {
		return nil, "", fmt.Errorf("run this command in a clone of kube-queue: %w", err)
	}
	fork, err := output(ctx, "git", "merge-base", *base, "HEAD")
	if err != nil {
		return nil, "", fmt.Errorf("HEAD and the base %q have no common commit; set BASE (--base) to a branch or commit: %w", *base, err)
	}
	head, headErr := output(ctx, "git", "rev-parse", "HEAD")
	untracked, err := output(ctx, "git", "ls-files", "--others", "--exclude-standard")
	diff, diffErr := output(ctx, "git", "diff", "--name-only", "--no-renames", strings.TrimSpace(fork))
	since = fmt.Sprintf("%.12s, the last commit that is in %s", fork, *base)
	if fork == head && diff+untracked == "" {
		since = "HEAD~1, because HEAD is in " + *base + " and everything is committed"
		diff, diffErr = output(ctx, "git", "diff", "--name-only", "--no-renames", "HEAD~1")
	}
	return strings.FieldsFunc(diff+untracked, func(r rune) bool { return r == '\n' }), since, errors.Join(headErr, err, diffErr)
}

func output(ctx context.Context, command ...string) (string, error) {
	out, err := exec.CommandContext(ctx, command[0], command[1:]...).Output()
	if exit := new(exec.ExitError); errors.As(err, &exit) {
		err = fmt.Errorf("%s %s: %s", command[0], command[1], strings.TrimSpace(string(exit.Stderr)))
	}
	return string(out), err
}

// runSteps runs the steps that can end before the deadline, two at a time.
func runSteps(ctx context.Context, steps []step, deadline time.Time) (err error) {
	within, cancel := context.WithDeadline(ctx, deadline)
	defer cancel()
	var mu sync.Mutex
	var all sync.WaitGroup
	slots := make(chan struct{}, 2)
	for _, s := range steps {
		slots <- struct{}{}
		if ctx.Err() != nil || time.Until(deadline) < time.Duration(s.seconds)*time.Second {
			fmt.Println("no time for: go test", s.args)
			<-slots
			continue
		}
		all.Go(func() {
			failure := execute(within, "go test "+s.args+" -short -count=1 -timeout=10m")
			mu.Lock()
			if within.Err() == nil {
				err = errors.Join(err, failure)
			} else {
				fmt.Println("stopped before its end: go test", s.args)
			}
			mu.Unlock()
			<-slots
		})
	}
	all.Wait()
	return errors.Join(err, ctx.Err())
}

// execute prints a command as for a shell, and runs it. When the context ends, so do all processes of the command.
func execute(ctx context.Context, command string) error {
	fmt.Println("+", command)
	args := strings.Fields(strings.ReplaceAll(command, "'", ""))
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGINT) }
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s: %w", command, err)
	}
	return nil
}
