// Package process starts, watches and ends operating system processes so that
// none outlives the one that started it.
//
// Words:
//   - leader: a process started here. It leads a process group of its own, so
//     that what it starts in turn can be ended with it.
//   - identity: process number and start time together. The number alone is
//     handed out again after a process is gone; with the start time it names
//     one process forever.
//   - mark: an environment variable that all processes of one cluster carry and
//     inherit, by which they are found again even when nobody remembers them.
package process

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"time"
)

// Spec says what to run.
type Spec struct {
	// Name is what people call it.
	Name string
	// Path is the executable; Arg0 is what it is called by, Path when empty.
	Path, Arg0 string
	Args       []string
	// Env is the whole environment.
	Env []string
	Dir string
	// Log is the file that takes both output streams. It is appended to.
	Log string
}

// Starter starts processes that die with it.
//
// The kernel sends the parent-death signal when the THREAD that forked the
// child ends, not the process. A Go program ends threads as it likes, so one
// goroutine, locked to one thread, does all the forking for as long as the
// program runs.
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

// Start runs what the spec says, with output into its log.
func (s *Starter) Start(spec Spec) (*Process, error) {
	if err := os.MkdirAll(filepath.Dir(spec.Log), 0o755); err != nil {
		return nil, fmt.Errorf("start %s: %w", spec.Name, err)
	}
	log, err := os.OpenFile(spec.Log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", spec.Name, err)
	}
	// The child has its own copy once it is started.
	defer log.Close()

	cmd := exec.Command(spec.Path, spec.Args...)
	if spec.Arg0 != "" {
		cmd.Args[0] = spec.Arg0
	}
	cmd.Env, cmd.Dir = spec.Env, spec.Dir
	cmd.Stdout, cmd.Stderr = log, log
	p, err := s.StartCommand(spec.Name, cmd)
	if err != nil {
		return nil, err
	}
	p.Log = spec.Log
	return p, nil
}

// StartCommand starts a prepared command as the leader of a group of its own.
func (s *Starter) StartCommand(name string, cmd *exec.Cmd) (*Process, error) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Setpgid = true
	cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL

	failed := make(chan error)
	s.requests <- func() { failed <- cmd.Start() }
	if err := <-failed; err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	p := &Process{
		Name:     name,
		Identity: Identity{PID: cmd.Process.Pid},
		Started:  time.Now(),
		done:     make(chan struct{}),
	}
	// The child is not waited for yet, so its entry is there even if it has
	// ended already.
	p.StartTicks, _ = startTicks(p.PID)
	go func() {
		p.err = cmd.Wait()
		// What the leader left behind in its group goes with it.
		signalGroup(p.PID, syscall.SIGKILL)
		close(p.done)
	}()
	return p, nil
}

// Process is a leader that was started here.
type Process struct {
	Name string
	Identity
	Started time.Time
	Log     string

	done chan struct{}
	err  error
}

// Done is closed when the process is gone.
func (p *Process) Done() <-chan struct{} { return p.done }

// Exit reports how the process ended, in words; call it after Done is closed.
func (p *Process) Exit() string {
	var exit *exec.ExitError
	switch {
	case p.err == nil:
		return "exit status 0"
	case errors.As(p.err, &exit):
		return exit.ProcessState.String()
	default:
		return p.err.Error()
	}
}

// Err is nil when the process ended with exit status 0; call it after Done is
// closed.
func (p *Process) Err() error { return p.err }

// Signal sends a signal to the whole group.
func (p *Process) Signal(sig syscall.Signal) {
	select {
	case <-p.done:
	default:
		signalGroup(p.PID, sig)
	}
}

// Stop asks the group to end, kills it after the grace period, and returns when
// the leader is gone.
func (p *Process) Stop(grace time.Duration) {
	p.Signal(syscall.SIGTERM)
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-p.done:
		return
	case <-timer.C:
	}
	p.Signal(syscall.SIGKILL)
	<-p.done
}

func signalGroup(leader int, sig syscall.Signal) {
	// ESRCH says that the group is gone, which is what was wanted.
	_ = syscall.Kill(-leader, sig)
}
