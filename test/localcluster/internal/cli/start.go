package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"

	"kube-queue.dev/kube-queue/test/localcluster/internal/build"
	"kube-queue.dev/kube-queue/test/localcluster/internal/cluster"
)

func buildCommand() command {
	return command{
		name:    "build",
		summary: "build all programs into the cache",
		help: `
Programs that are already in the cache are not built again. The cache is
$KUBE_QUEUE_CACHE, else $XDG_CACHE_HOME/kube-queue, else ~/.cache/kube-queue; it can be
removed at any time. The first build takes some minutes and downloads modules.`,
		flags: func(i *invocation) {
			i.sourceFlag()
			i.kubernetesFlag()
			i.set.Var(list{&i.components}, "components", "`NAMES` of the components to build, separated by commas: "+strings.Join(componentNames(), ", ")+"; unset: all")
			i.set.BoolVar(&i.missing, "missing", false, "print the components that are not built, and build nothing")
		},
		run: func(ctx context.Context, i *invocation) error {
			if _, err := i.validConfig(); err != nil {
				return err
			}
			components, err := chooseComponents(i.config.Kubernetes, i.components)
			if err != nil {
				return err
			}
			builder, err := i.builder()
			if err != nil {
				return err
			}
			if i.missing {
				return i.printMissing(ctx, builder, components)
			}
			dirs, err := builder.Ensure(ctx, components)
			if err != nil {
				return err
			}
			for n, c := range components {
				fmt.Fprintf(i.world.Out, "%s\t%s\n", c.Name, dirs[n])
			}
			return nil
		},
	}
}

func (i *invocation) printMissing(ctx context.Context, builder *build.Builder, components []build.Component) error {
	missing, err := builder.Missing(ctx, components)
	if err != nil {
		return err
	}
	for _, c := range missing {
		fmt.Fprintln(i.world.Out, c.Name)
	}
	return nil
}

func componentNames() []string {
	var names []string
	for _, c := range cluster.AllComponents(cluster.DefaultConfig().Kubernetes) {
		names = append(names, c.Name)
	}
	return names
}

func chooseComponents(kubernetes string, names []string) ([]build.Component, error) {
	all := cluster.AllComponents(kubernetes)
	if len(names) == 0 {
		return all, nil
	}
	var chosen []build.Component
	for _, name := range names {
		found := false
		for _, c := range all {
			if c.Name == name {
				chosen, found = append(chosen, c), true
			}
		}
		if !found {
			return nil, usagef("unknown component %q; known components: %s", name, strings.Join(componentNames(), ", "))
		}
	}
	return chosen, nil
}

// prepare builds missing programs and locks the data folder.
func (i *invocation) prepare(ctx context.Context, folder cluster.Folder, config cluster.Config) (lock *os.File, prepared cluster.Config, err error) {
	builder, err := i.builder()
	if err != nil {
		return nil, config, err
	}
	components := config.Components()
	dirs, err := builder.Ensure(ctx, components)
	if err != nil {
		return nil, config, err
	}
	config.Built = map[string]string{}
	for n, c := range components {
		config.Built[c.Name] = dirs[n]
	}
	if i.fresh {
		if _, err := folder.Stop(ctx); err != nil {
			return nil, config, err
		}
	}
	lock, err = folder.Prepare(config)
	return lock, config, err
}

func upCommand() command {
	return command{
		name:    "up",
		summary: "start a cluster in the background",
		help: `
Builds missing programs, starts the cluster, waits until it is ready and prints how to
use it. Every cluster starts empty: data of an earlier cluster in the folder is removed.
A running cluster is left unchanged, unless --fresh is set.`,
		flags: (*invocation).clusterFlags,
		run:   up,
	}
}

func up(ctx context.Context, i *invocation) error {
	folder, err := i.folder()
	if err != nil {
		return err
	}
	config, err := i.validConfig()
	if err != nil {
		return err
	}
	if !i.fresh && folder.InUse() {
		return i.alreadyUp(ctx, folder)
	}
	lock, _, err := i.prepare(ctx, folder, config)
	var inUse *cluster.InUseError
	if errors.As(err, &inUse) && !i.fresh {
		// Another process was faster.
		return i.alreadyUp(ctx, folder)
	}
	if err != nil {
		return err
	}
	supervisor, err := superviseDetached(folder, lock)
	// The supervisor has its own copy of the lock, so it holds the folder.
	lock.Close()
	if err != nil {
		return err
	}
	ended := make(chan struct{})
	go func() {
		_ = supervisor.Wait()
		close(ended)
	}()
	ready, err := folder.WaitReady(ctx, i.say)
	if err != nil {
		// Clean up in any case, also after an interrupt.
		_, stopErr := folder.Stop(context.WithoutCancel(ctx))
		<-ended
		return errors.Join(err, stopErr)
	}
	i.printReady(ready)
	return nil
}

func (i *invocation) alreadyUp(ctx context.Context, folder cluster.Folder) error {
	ready, err := folder.WaitReady(ctx, i.say)
	if err != nil {
		return err
	}
	i.say("a cluster already runs in " + string(folder) + " (--fresh replaces it)")
	i.printReady(ready)
	return nil
}

// superviseDetached starts the supervisor in its own session, so that it survives the
// terminal. It inherits the lock on the folder.
func superviseDetached(folder cluster.Folder, lock *os.File) (*exec.Cmd, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	log, err := os.Create(folder.Log("supervisor"))
	if err != nil {
		return nil, fmt.Errorf("data folder: %w", err)
	}
	defer log.Close()
	cmd := exec.Command(self, "supervise", "--data", string(folder))
	cmd.Stdout, cmd.Stderr = log, log
	cmd.ExtraFiles = []*os.File{lock}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start the supervisor: %w", err)
	}
	return cmd, nil
}

// inheritedLock is the file descriptor of the inherited lock.
const inheritedLock = 3

func superviseCommand() command {
	return command{
		name:    "supervise",
		summary: "run a prepared cluster (up starts this command in the background)",
		hidden:  true,
		flags:   (*invocation).dataFlag,
		run: func(ctx context.Context, i *invocation) error {
			// No part may inherit the lock: the folder would stay locked while any part runs.
			syscall.CloseOnExec(inheritedLock)
			folder, err := i.folder()
			if err != nil {
				return err
			}
			supervisor, err := cluster.NewSupervisor(folder, i.sayf)
			if err != nil {
				return err
			}
			return supervisor.Run(ctx, func(cluster.Ready) {})
		},
	}
}

func runCommand() command {
	return command{
		name:    "run",
		summary: "run a cluster in the foreground, for tests",
		help: `
When the cluster is ready, the command prints one line of JSON to standard output:
  {"kubeconfig":...,"data":...,"auditLog":...,"kubectl":...,"server":...,"logs":...}
Progress goes to standard error. The cluster stops when standard input ends, or on
SIGINT or SIGTERM. The exit status is not 0 if a part crashed or the cluster did not
become ready.`,
		flags: (*invocation).clusterFlags,
		run:   run,
	}
}

func run(ctx context.Context, i *invocation) error {
	folder, err := i.folder()
	if err != nil {
		return err
	}
	config, err := i.validConfig()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() {
		_, _ = io.Copy(io.Discard, i.world.In)
		cancel(errInputEnded)
	}()

	lock, _, err := i.prepare(ctx, folder, config)
	if err != nil {
		return err
	}
	defer lock.Close()
	supervisor, err := cluster.NewSupervisor(folder, i.sayf)
	if err != nil {
		return err
	}
	wasReady := false
	err = supervisor.Run(ctx, func(ready cluster.Ready) {
		wasReady = true
		_ = json.NewEncoder(i.world.Out).Encode(ready)
	})
	if err != nil {
		return err
	}
	if !wasReady {
		return fmt.Errorf("the cluster was not ready yet: %w", context.Cause(ctx))
	}
	return nil
}

var errInputEnded = errors.New("standard input has ended")

func (i *invocation) say(text string) { fmt.Fprintln(i.world.Err, text) }

func (i *invocation) sayf(format string, args ...any) { i.say(fmt.Sprintf(format, args...)) }

func (i *invocation) printReady(ready *cluster.Ready) {
	fmt.Fprintf(i.world.Out, `The cluster is ready. To use it:
  export KUBECONFIG=%s
  alias kubectl=%s
Audit log: %s
Logs:      %s
To stop it:
  localcluster down --data %s
`, ready.Kubeconfig, ready.Kubectl, ready.AuditLog, ready.Logs, ready.Data)
}
