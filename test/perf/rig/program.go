package rig

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"time"

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

	rig    *Rig
	cmd    *exec.Cmd
	health string
	// profiles is the address of the program's profiles, or empty.
	profiles string
	// foreign programs may exit with any status after a signal.
	foreign bool
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
	if err := p.await(ctx, "ready", "http://"+p.health+"/readyz"); err != nil {
		return nil, errors.Join(err, p.Kill())
	}
	return p, nil
}

// Launch starts a program without waiting until it is ready.
func (r *Rig) Launch(ctx context.Context, name string, env []string, args ...string) (*Program, error) {
	_, kubeconfig, err := r.Cluster.ServiceAccountConfig(ctx, name)
	if err != nil {
		return nil, err
	}
	health, err := freeAddress()
	if err != nil {
		return nil, err
	}
	args = append([]string{"--kubeconfig", kubeconfig, "--health-bind-address", health, "--metrics-bind-address=0"}, args...)
	profiles := ""
	if r.profiling {
		if profiles, err = freeAddress(); err != nil {
			return nil, err
		}
		args = append(args, "--profiling-bind-address", profiles)
	}
	p := &Program{Name: name, health: health, profiles: profiles}
	return p, r.begin(p, exec.Command(filepath.Join(r.programs, name), args...), env)
}

// Command starts a command of a shell, which finds the cluster by KUBECONFIG. Its child processes end
// and are measured with it.
func (r *Rig) Command(name, command string) (*Program, error) {
	p := &Program{Name: name, foreign: true}
	return p, r.begin(p, exec.Command("sh", "-c", command), []string{"KUBECONFIG=" + r.Cluster.Kubeconfig})
}

func (r *Rig) begin(p *Program, cmd *exec.Cmd, env []string) error {
	p.rig, p.cmd, p.ended = r, cmd, make(chan struct{})
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
	r.running[p.Name] = p
	r.mu.Unlock()
	go p.wait()
	return nil
}

func (p *Program) wait() {
	err := p.cmd.Wait()
	p.rig.mu.Lock()
	delete(p.rig.running, p.Name)
	p.rig.ended.add(p.Name, usedBy(p.cmd.ProcessState))
	p.rig.mu.Unlock()
	p.err = err
	close(p.ended)
}

// await waits until the program responds at the address. so describes the state in errors.
func (p *Program) await(ctx context.Context, so, address string) error {
	ctx, cancel := context.WithTimeoutCause(ctx, readyTimeout, fmt.Errorf("%s is not %s after %v; see %s", p.Name, so, readyTimeout, p.Log))
	defer cancel()
	return pace.Until(ctx, 20*time.Millisecond, func(ctx context.Context) (bool, error) {
		select {
		case <-p.ended:
			return false, fmt.Errorf("%s exited before it was %s: %w; see %s", p.Name, so, p.err, p.Log)
		default:
			return answers(ctx, address), nil
		}
	})
}

func answers(ctx context.Context, address string) bool {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return false
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return false
	}
	_ = response.Body.Close()
	return response.StatusCode == http.StatusOK
}

// Guard calls cancel if the program exits before ctx ends and before Stop or Kill, because figures
// are only valid for a running program.
func (p *Program) Guard(ctx context.Context, cancel context.CancelCauseFunc) {
	select {
	case <-ctx.Done():
	case <-p.ended:
		if !p.asked.Load() {
			cancel(fmt.Errorf("%s exited unexpectedly: %v; see %s", p.Name, p.err, p.Log))
		}
	}
}

// Stop terminates the program. It returns an error if the program had exited before, or exits with
// an error.
func (p *Program) Stop() error {
	if err := p.end(syscall.SIGTERM); err != nil {
		return err
	}
	if p.err != nil && !p.foreign {
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
		_ = syscall.Kill(-p.PID, syscall.SIGKILL)
		<-p.ended
		return fmt.Errorf("%s did not end within %v of %v; see %s", p.Name, stopGrace, signal, p.Log)
	}
}

func freeAddress() (string, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return listener.Addr().String(), listener.Close()
}
