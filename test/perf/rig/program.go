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
	"syscall"
	"time"
)

const (
	// readyTimeout is how long a program may take to be ready. After a kill the next process waits
	// for the lease of the previous one.
	readyTimeout = time.Minute
	// stopGrace is how long a program may take to terminate.
	stopGrace = 20 * time.Second
)

// Program is a running program.
type Program struct {
	Name string
	PID  int
	// Log is the path of the output.
	Log string

	rig    *Rig
	cmd    *exec.Cmd
	health string
	// profiles is the address of the program's profiles, or empty.
	profiles string
	ended    chan struct{}
	err      error
}

// Run starts a program with the rights of its ServiceAccount and returns when it is ready.
func (r *Rig) Run(ctx context.Context, name string, args ...string) (*Program, error) {
	return r.RunWith(ctx, name, nil, args...)
}

// RunWith is like Run, with additional environment variables.
func (r *Rig) RunWith(ctx context.Context, name string, env []string, args ...string) (*Program, error) {
	p, err := r.Launch(ctx, name, env, args...)
	if err != nil {
		return nil, err
	}
	if err := p.WaitReady(ctx); err != nil {
		return nil, errors.Join(err, p.Kill())
	}
	return p, nil
}

// Launch starts a program without waiting until it is ready.
func (r *Rig) Launch(ctx context.Context, name string, env []string, args ...string) (*Program, error) {
	if r.program(name) != nil {
		return nil, fmt.Errorf("start %s: it is already running; stop it first", name)
	}
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
	p := &Program{Name: name, rig: r, health: health, profiles: profiles, ended: make(chan struct{})}
	if err := p.start(args, env); err != nil {
		return nil, err
	}
	return p, nil
}

func (p *Program) start(args, env []string) error {
	p.Log = filepath.Join(p.rig.Cluster.Logs, p.Name+".log")
	// A restarted program appends to its log.
	log, err := os.OpenFile(p.Log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer log.Close()
	p.cmd = exec.Command(filepath.Join(p.rig.programs, p.Name), args...)
	p.cmd.Env = append(os.Environ(), env...)
	p.cmd.Stdout, p.cmd.Stderr = log, log
	// The program ends with this tool. Ctrl-C goes only to the tool, which then stops the program.
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
	if err := p.cmd.Start(); err != nil {
		return fmt.Errorf("start %s: %w", p.Name, err)
	}
	p.PID = p.cmd.Process.Pid
	p.rig.mu.Lock()
	p.rig.running[p.Name] = p
	p.rig.mu.Unlock()
	go p.wait()
	return nil
}

func (r *Rig) program(name string) *Program {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.running[name]
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

// WaitReady waits until the program is ready.
func (p *Program) WaitReady(ctx context.Context) error {
	return p.await(ctx, "ready", "http://"+p.health+"/readyz")
}

// await waits until the program responds at the address. so describes the state in errors.
func (p *Program) await(ctx context.Context, so, address string) error {
	ctx, cancel := context.WithTimeoutCause(ctx, readyTimeout, fmt.Errorf("%s is not %s after %v; see %s", p.Name, so, readyTimeout, p.Log))
	defer cancel()
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	for {
		if answers(ctx, address) {
			return nil
		}
		select {
		case <-p.ended:
			return fmt.Errorf("%s exited before it was %s: %w; see %s", p.Name, so, p.err, p.Log)
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-ticker.C:
		}
	}
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

// Ended returns a channel that is closed when the program has exited.
func (p *Program) Ended() <-chan struct{} { return p.ended }

// Stop terminates the program. It returns an error if the program had exited before, or exits with
// an error.
func (p *Program) Stop() error {
	if err := p.end(syscall.SIGTERM); err != nil {
		return err
	}
	if p.err != nil {
		return fmt.Errorf("%s ended with %w; see %s", p.Name, p.err, p.Log)
	}
	return nil
}

// Kill kills the program.
func (p *Program) Kill() error { return p.end(syscall.SIGKILL) }

func (p *Program) end(signal syscall.Signal) error {
	if err := p.cmd.Process.Signal(signal); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("end %s: %w", p.Name, err)
	}
	timer := time.NewTimer(stopGrace)
	defer timer.Stop()
	select {
	case <-p.ended:
		return nil
	case <-timer.C:
		_ = p.cmd.Process.Kill()
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
