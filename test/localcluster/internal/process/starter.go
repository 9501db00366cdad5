// Package process starts, watches and ends operating system processes. No process outlives the
// process that started it.
//
// Terms:
//   - leader: a process started by this package. It leads its own process group, so
//     that its children can be ended with it.
//   - identity: PID and start time. A PID alone can be reused after the
//     process has exited; with the start time it identifies
//     one process.
//   - mark: an environment variable of all processes of one cluster. Children inherit it, so they can be found.
package process

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"time"
)

// Spec describes a process to start.
type Spec struct {
	// Name is used in messages.
	Name string
	// Path is the executable.
	Path string
	Args []string
	// Env is the complete environment.
	Env []string
	Dir string
	// Log is the file to which both output streams are appended.
	Log string
}

// Starter starts processes that die with it.
//
// The kernel sends the parent-death signal when the thread that forked the child ends, not the
// process. The Go runtime can end threads, so one goroutine, locked to one thread, starts all
// processes.
type Starter struct {
	requests chan func()
}

// NewStarter returns a starter whose thread lives as long as the program.
func NewStarter() *Starter {
	s := &Starter{requests: make(chan func())}
	go func() {
		runtime.LockOSThread()
		for request := range s.requests {
			request()
		}
	}()
	return s
}

// Start starts the process of the spec, with output to its log.
func (s *Starter) Start(spec Spec) (*Process, error) {
	if err := os.MkdirAll(filepath.Dir(spec.Log), 0o755); err != nil {
		return nil, fmt.Errorf("start %s: %w", spec.Name, err)
	}
	log, err := os.OpenFile(spec.Log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", spec.Name, err)
	}
	// The started child has its own copy.
	defer log.Close()

	cmd := exec.Command(spec.Path, spec.Args...)
	cmd.Env, cmd.Dir = spec.Env, spec.Dir
	cmd.Stdout, cmd.Stderr = log, log
	return s.StartCommand(spec.Name, cmd)
}

// StartCommand starts a prepared command as the leader of its own group.
func (s *Starter) StartCommand(name string, cmd *exec.Cmd) (*Process, error) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}

	failed := make(chan error)
	s.requests <- func() { failed <- cmd.Start() }
	if err := <-failed; err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	p := &Process{
		Identity: Identity{PID: cmd.Process.Pid},
		done:     make(chan struct{}),
	}
	// Wait was not called yet, so the entry in /proc exists even if the child has exited.
	p.StartTicks, _ = startTicks(p.PID)
	go func() {
		p.err = cmd.Wait()
		// Kill the remaining processes of the group.
		signalGroup(p.PID, syscall.SIGKILL)
		close(p.done)
	}()
	return p, nil
}

// Process is a leader started by this package.
type Process struct {
	Identity

	done chan struct{}
	err  error
}

// Done returns a channel that is closed when the process has exited.
func (p *Process) Done() <-chan struct{} { return p.done }

// Ended reports whether the process has exited.
func (p *Process) Ended() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// Exit describes how the process ended. Call it after Done is closed.
func (p *Process) Exit() string {
	if p.err == nil {
		return "exit status 0"
	}
	return p.err.Error()
}

// Err returns nil if the process exited with status 0. Call it after Done is closed.
func (p *Process) Err() error { return p.err }

// Stop terminates the group, kills it after the grace period, and returns when the leader has
// exited.
func (p *Process) Stop(grace time.Duration) { p.End(syscall.SIGTERM, grace) }

// End is like Stop, but with a different first signal.
func (p *Process) End(first syscall.Signal, grace time.Duration) {
	p.signal(first)
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-p.done:
		return
	case <-timer.C:
	}
	p.signal(syscall.SIGKILL)
	<-p.done
}

// signal sends a signal to the group.
func (p *Process) signal(sig syscall.Signal) {
	if !p.Ended() {
		signalGroup(p.PID, sig)
	}
}

func signalGroup(leader int, sig syscall.Signal) {
	// ESRCH means that the group has exited.
	_ = syscall.Kill(-leader, sig)
}
