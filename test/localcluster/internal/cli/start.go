package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"

	"github.com/spf13/cobra"

	"kube-queue.dev/kube-queue/test/localcluster/internal/cluster"
)

func (i *invocation) startCommands() []*cobra.Command {
	return []*cobra.Command{
		i.command(&cobra.Command{
			Use:   "build",
			Short: "build all programs into the cache",
			Long: `
Programs that are already in the cache are not built again. The cache is
$KUBE_QUEUE_CACHE, else $XDG_CACHE_HOME/kube-queue, else ~/.cache/kube-queue; it can be
removed at any time. The first build takes some minutes and downloads modules.`,
		}, runBuild, i.kubernetesFlag),
		i.command(&cobra.Command{
			Use:   "up",
			Short: "start a cluster in the background",
			Long: `
Builds missing programs, starts the cluster, waits until it is ready and prints how to
use it. Every cluster starts empty: data of an earlier cluster in the folder is removed.
A running cluster is left unchanged, unless --fresh is set.`,
		}, up, i.clusterFlags),
		i.command(&cobra.Command{
			Use:   "run",
			Short: "run a cluster in the foreground, for tests",
			Long: `
When the cluster is ready, the command prints one line of JSON to standard output:
  {"kubeconfig":...,"data":...,"auditLog":...,"kubectl":...,"server":...,"logs":...}
Progress goes to standard error. The cluster stops when standard input ends, or on
SIGINT or SIGTERM. The exit status is not 0 if a part crashed or the cluster did not
become ready.`,
		}, run, i.clusterFlags),
		i.command(&cobra.Command{
			Use:    "supervise",
			Short:  "run a prepared cluster (up starts this command in the background)",
			Hidden: true,
		}, superviseInherited, i.dataFlag),
	}
}

func up(ctx context.Context, i *invocation) error {
	if !i.fresh && i.folder.InUse() {
		return i.alreadyUp(ctx)
	}
	lock, err := i.prepare(ctx)
	if errors.Is(err, cluster.ErrInUse) && !i.fresh {
		// Another process was faster.
		return i.alreadyUp(ctx)
	}
	if err != nil {
		return err
	}
	supervisor, err := superviseDetached(i.folder, lock)
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
	ready, err := i.folder.WaitReady(ctx, i.say)
	if err != nil {
		// Clean up in any case, even after an interrupt.
		_, stopErr := i.folder.Stop(context.WithoutCancel(ctx))
		<-ended
		return errors.Join(err, stopErr)
	}
	i.printReady(ready)
	return nil
}

func (i *invocation) alreadyUp(ctx context.Context) error {
	ready, err := i.folder.WaitReady(ctx, i.say)
	if err != nil {
		return err
	}
	i.say("a cluster already runs in %s (--fresh replaces it)", i.folder)
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

func superviseInherited(ctx context.Context, i *invocation) error {
	// No part may inherit the lock: the folder would stay locked while any part runs.
	syscall.CloseOnExec(inheritedLock)
	return i.supervise(ctx, func(cluster.Ready) {})
}

func (i *invocation) supervise(ctx context.Context, ready func(cluster.Ready)) error {
	supervisor, err := cluster.NewSupervisor(i.folder, i.say)
	if err != nil {
		return err
	}
	return supervisor.Run(ctx, ready)
}

var errInputEnded = errors.New("standard input has ended")

func run(ctx context.Context, i *invocation) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() {
		_, _ = io.Copy(io.Discard, i.world.In)
		cancel(errInputEnded)
	}()

	lock, err := i.prepare(ctx)
	if err != nil {
		return err
	}
	defer lock.Close()
	wasReady := false
	err = i.supervise(ctx, func(ready cluster.Ready) {
		wasReady = true
		_ = json.NewEncoder(i.world.Out).Encode(ready)
	})
	if err == nil && !wasReady {
		err = fmt.Errorf("the cluster was not ready yet: %w", context.Cause(ctx))
	}
	return err
}

func (i *invocation) say(format string, args ...any) { fmt.Fprintf(i.world.Err, format+"\n", args...) }

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
