package jobs

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"kube-queue.dev/kube-queue/test/perf/rig"
)

// open starts the queue's programs and returns those of kube-queue. If a program exits during the
// turn, open calls cancel. stop is never nil.
func (b *Bench) open(ctx context.Context, queue Queue, cancel context.CancelCauseFunc) (ours []*rig.Program, stop func() error, err error) {
	if queue.Name == KubeQueue {
		return b.openOurs(ctx, cancel)
	}
	stop = func() error { return nil }
	if err := b.withoutPolicies(ctx); err != nil {
		return nil, stop, err
	}
	if queue.Name != None {
		stop, err = b.openOthers(cancel)
	}
	return nil, stop, err
}

// openOurs starts the programs of kube-queue.
func (b *Bench) openOurs(ctx context.Context, cancel context.CancelCauseFunc) (running []*rig.Program, stop func() error, err error) {
	stopped := make(chan struct{})
	stop = func() error {
		close(stopped)
		var errs []error
		for _, p := range running {
			errs = append(errs, p.Stop())
		}
		return errors.Join(errs...)
	}
	if err := b.policies(ctx); err != nil {
		return running, stop, err
	}
	for _, start := range [][]string{{rig.Controller}, {rig.Extensions, "--enabled-extensions=job"}} {
		p, err := b.rig.Run(ctx, start[0], start[1:]...)
		if err != nil {
			return running, stop, err
		}
		running = append(running, p)
		go watchOver(p.Ended(), stopped, func() { cancel(fmt.Errorf("%s exited during the turn; see %s", p.Name, p.Log)) })
	}
	return running, stop, nil
}

func watchOver(ended, stopped <-chan struct{}, report func()) {
	select {
	case <-stopped:
	case <-ended:
		report()
	}
}

// openOthers runs the commands of --with.
func (b *Bench) openOthers(cancel context.CancelCauseFunc) (stop func() error, err error) {
	var running []*beside
	stopped := make(chan struct{})
	stop = func() error {
		close(stopped)
		var errs []error
		for _, p := range running {
			errs = append(errs, p.end())
		}
		return errors.Join(errs...)
	}
	names, err := besideNames(b.options.With)
	if err != nil {
		return stop, err
	}
	for i, command := range b.options.With {
		p, err := startBeside(names[i], command, b.rig.Cluster.Kubeconfig, b.rig.Cluster.Logs)
		if err != nil {
			return stop, err
		}
		b.rig.Watch(p.name, p.cmd.Process.Pid)
		running = append(running, p)
		go watchOver(p.ended, stopped, func() {
			cancel(fmt.Errorf("--with %q exited during the turn: %v; see %s", command, p.err, p.log))
		})
	}
	return stop, nil
}

// beside is a command that runs during a turn, with its child processes.
type beside struct {
	name, log string
	cmd       *exec.Cmd
	ended     chan struct{}
	err       error
}

// startBeside runs a command with the shell in its own process group.
func startBeside(name, command, kubeconfig, logs string) (*beside, error) {
	p := &beside{name: name, log: filepath.Join(logs, name+".log"), ended: make(chan struct{})}
	log, err := os.OpenFile(p.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	p.cmd = exec.Command("sh", "-c", command)
	p.cmd.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig)
	p.cmd.Stdout, p.cmd.Stderr = log, log
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("--with %q: %w", command, err)
	}
	go func() {
		p.err = p.cmd.Wait()
		close(p.ended)
	}()
	return p, nil
}

// besideNames returns the program names of the commands. Repeated names are numbered.
func besideNames(commands []string) ([]string, error) {
	names, times := make([]string, len(commands)), map[string]int{}
	for i, command := range commands {
		name := besideName(command)
		if name == "" {
			return nil, fmt.Errorf("--with %q: the command contains no program", command)
		}
		if times[name]++; times[name] > 1 {
			name = fmt.Sprintf("%s-%d", name, times[name])
		}
		names[i] = name
	}
	return names, nil
}

// besideName returns the program name of a command.
func besideName(command string) string {
	for word := range strings.FieldsSeq(command) {
		if word != "exec" && !strings.Contains(word, "=") {
			return filepath.Base(word)
		}
	}
	return ""
}

// besideGrace is how long a command may take to terminate.
const besideGrace = 20 * time.Second

// end terminates the command and its child processes. The exit status is ignored, since a foreign
// program may exit with any status after a signal.
func (p *beside) end() error {
	group := -p.cmd.Process.Pid
	_ = syscall.Kill(group, syscall.SIGTERM)
	timer := time.NewTimer(besideGrace)
	defer timer.Stop()
	select {
	case <-p.ended:
	case <-timer.C:
		_ = syscall.Kill(group, syscall.SIGKILL)
		<-p.ended
		return fmt.Errorf("%s did not end within %v; see %s", p.name, besideGrace, p.log)
	}
	_ = syscall.Kill(group, syscall.SIGKILL)
	return nil
}
