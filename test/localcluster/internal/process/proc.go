package process

import (
	"fmt"
	"os"
	"slices"
	"syscall"
	"time"

	"github.com/prometheus/procfs"
)

// Identity identifies a process; see the package comment.
type Identity struct {
	PID int `json:"pid"`
	// StartTicks is the start time in clock ticks since boot.
	StartTicks uint64 `json:"startTicks"`
}

// Self returns the identity of the running program.
func Self() Identity {
	ticks, _ := startTicks(os.Getpid())
	return Identity{PID: os.Getpid(), StartTicks: ticks}
}

// Alive reports whether this process is running.
func (id Identity) Alive() bool {
	if id.PID <= 0 {
		return false
	}
	s, err := stat(id.PID)
	return err == nil && s.Starttime == id.StartTicks && s.State != "Z"
}

// Kill kills the process and its group, and waits until it has exited. It does not affect another
// process with the same PID.
func (id Identity) Kill(deadline time.Duration) error {
	if !id.Alive() {
		return nil
	}
	if group, err := syscall.Getpgid(id.PID); err == nil && group == id.PID {
		signalGroup(id.PID, syscall.SIGKILL)
	}
	_ = syscall.Kill(id.PID, syscall.SIGKILL)
	return WaitGone([]Identity{id}, deadline)
}

// WaitGone waits until all processes have exited.
func WaitGone(ids []Identity, deadline time.Duration) error {
	ticker := time.NewTicker(5 * time.Millisecond)
	defer ticker.Stop()
	end := time.Now().Add(deadline)
	for {
		ids = slices.DeleteFunc(slices.Clone(ids), func(id Identity) bool { return !id.Alive() })
		if len(ids) == 0 {
			return nil
		}
		if time.Now().After(end) {
			return fmt.Errorf("process %d still runs after %v", ids[0].PID, deadline)
		}
		<-ticker.C
	}
}

// Marked returns all processes with NAME=VALUE in their environment, except for the caller.
// Processes of other users cannot be read.
func Marked(name, value string) []Identity {
	processes, _ := procfs.AllProcs()
	var found []Identity
	for _, p := range processes {
		if p.PID == os.Getpid() {
			continue
		}
		// Read the start time first. If the PID is reused in between, the identity is that of the
		// process that has exited, and no other process is killed.
		ticks, err := startTicks(p.PID)
		if err != nil {
			continue
		}
		environ, err := p.Environ()
		if err == nil && slices.Contains(environ, name+"="+value) {
			found = append(found, Identity{PID: p.PID, StartTicks: ticks})
		}
	}
	return found
}

func startTicks(pid int) (uint64, error) {
	s, err := stat(pid)
	return s.Starttime, err
}

func stat(pid int) (procfs.ProcStat, error) {
	p, err := procfs.NewProc(pid)
	if err != nil {
		return procfs.ProcStat{}, err
	}
	return p.Stat()
}
