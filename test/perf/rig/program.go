package rig

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"time"

	"kube-queue.dev/kube-queue/test/clustertest"
	"kube-queue.dev/kube-queue/test/perf/pace"
)

const (
	// readyTimeout is how long a program may take to be ready. After a kill the next process waits
	// for the lease of the previous one.
	readyTimeout = time.Minute
	// stopGrace is how long a program may take to terminate.
	stopGrace = 20 * time.Second
)

// Program is a running program of kube-queue, or a command beside it.
type Program struct {
	Name string
	// PID is also the process group.
	PID int
	// Log is the path of the output.
	Log string

	cmd *exec.Cmd
	// health and profiles are addresses of a program of kube-queue. A command has none, and may exit with
	// any status after a signal.
	health, profiles string
	// asked reports that Stop or Kill was called.
	asked atomic.Bool
	ended chan struct{}
	err   error
}

// Run starts a program with the rights of its ServiceAccount and with additional environment
// variables, and returns when it is ready.
func (r *Rig) Run(ctx context.Context, name string, env []string, args ...string) (*Program, error) {
	p, err := r.Launch(ctx, name, env, args...)
	if err != nil {
		return nil, err
	}
	return p, p.await(ctx, "ready", p.health+"/readyz")
}

// Launch starts a program without waiting until it is ready.
func (r *Rig) Launch(ctx context.Context, name string, env []string, args ...string) (*Program, error) {
	_, kubeconfig, err := r.Cluster.ServiceAccountConfig(ctx, name)
	health, profiles, addressErr := clustertest.FreeAddresses()
	if err := errors.Join(err, addressErr); err != nil {
		return nil, err
	}
	args = append([]string{"--kubeconfig", kubeconfig, "--health-bind-address", health, "--metrics-bind-address=0",
		"--profiling-bind-address", profiles}, args...)
	p := &Program{Name: name, health: "http://" + health, profiles: "http://" + profiles}
	return p, r.begin(p, exec.Command(filepath.Join(r.programs, name), args...), env)
}

// Command starts a command of a shell, which finds the cluster by KUBECONFIG. Its child processes end
// and are measured with it.
func (r *Rig) Command(name, command string) (*Program, error) {
	p := &Program{Name: name}
	return p, r.begin(p, exec.Command("sh", "-c", command), []string{"KUBECONFIG=" + r.Cluster.Kubeconfig})
}

func (r *Rig) begin(p *Program, cmd *exec.Cmd, env []string) error {
	p.cmd, p.ended = cmd, make(chan struct{})
	p.Log = filepath.Join(r.Cluster.Logs, p.Name+".log")
	// A restarted program appends to its log.
	log, err := os.OpenFile(p.Log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer log.Close()
	cmd.Env = append(os.Environ(), env...)
	cmd.Stdout, cmd.Stderr = log, log
	// The program ends with this tool. Ctrl-C goes only to the tool, which then stops the program.
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start %s: %w", p.Name, err)
	}
	p.PID = cmd.Process.Pid
	r.mu.Lock()
	defer r.mu.Unlock()
	r.running[p.Name] = p
	go r.wait(p)
	return nil
}

func (r *Rig) wait(p *Program) {
	p.err = p.cmd.Wait()
	r.mu.Lock()
	delete(r.running, p.Name)
	r.mu.Unlock()
	close(p.ended)
	if !p.asked.Load() {
		r.Exited(fmt.Errorf("%s exited unexpectedly: %v; see %s", p.Name, p.err, p.Log))
	}
}

// await waits until the program responds at the address. so describes the state in errors.
func (p *Program) await(ctx context.Context, so, address string) error {
	late := fmt.Errorf("%s is not %s after %v; see %s", p.Name, so, readyTimeout, p.Log)
	return pace.Until(ctx, 20*time.Millisecond, readyTimeout, late, func(ctx context.Context) (bool, error) {
		select {
		case <-p.ended:
			return false, fmt.Errorf("%s exited before it was %s: %w; see %s", p.Name, so, p.err, p.Log)
		default:
			_, err := get(ctx, http.DefaultClient, address)
			return err == nil, nil
		}
	})
}

// Stop terminates the program. A program of kube-queue must exit without an error.
func (p *Program) Stop() error {
	if err := p.end(syscall.SIGTERM); err != nil {
		return err
	}
	if p.err != nil && p.health != "" {
		return fmt.Errorf("%s ended with %w; see %s", p.Name, p.err, p.Log)
	}
	return nil
}

// Kill kills the program.
func (p *Program) Kill() error { return p.end(syscall.SIGKILL) }

func (p *Program) end(signal syscall.Signal) error {
	p.asked.Store(true)
	// Children that are left end in any case.
	defer func() { _ = syscall.Kill(-p.PID, syscall.SIGKILL) }()
	if err := syscall.Kill(-p.PID, signal); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("end %s: %w", p.Name, err)
	}
	timer := time.NewTimer(stopGrace)
	defer timer.Stop()
	select {
	case <-p.ended:
		return nil
	case <-timer.C:
		return fmt.Errorf("%s did not end within %v of %v; see %s", p.Name, stopGrace, signal, p.Log)
	}
}
