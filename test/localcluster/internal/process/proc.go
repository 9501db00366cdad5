package process

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
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
	ticks, err := startTicks(id.PID)
	return err == nil && ticks == id.StartTicks && !zombie(id.PID)
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
	want := []byte(name + "=" + value)
	paths, _ := filepath.Glob("/proc/[0-9]*/environ")
	var found []Identity
	for _, path := range paths {
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		if err != nil || pid == os.Getpid() {
			continue
		}
		// Read the start time first. If the PID is reused in between, the identity is that of the
		// process that has exited, and no other process is killed.
		ticks, err := startTicks(pid)
		if err != nil {
			continue
		}
		environ, err := os.ReadFile(path)
		if err != nil {
			continue
		}
		if slices.ContainsFunc(bytes.Split(environ, []byte{0}), func(v []byte) bool { return bytes.Equal(v, want) }) {
			found = append(found, Identity{PID: pid, StartTicks: ticks})
		}
	}
	return found
}

func startTicks(pid int) (uint64, error) {
	fields, err := statFields(pid)
	if err != nil {
		return 0, err
	}
	return strconv.ParseUint(fields[19], 10, 64)
}

func zombie(pid int) bool {
	fields, err := statFields(pid)
	return err == nil && fields[0] == "Z"
}

// statFields returns the fields of /proc/PID/stat from the third on. The second field, the command,
// is in parentheses and can contain spaces and parentheses.
func statFields(pid int) ([]string, error) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return nil, err
	}
	_, rest, _ := strings.Cut(string(data[max(0, bytes.LastIndexByte(data, ')')):]), " ")
	fields := strings.Fields(rest)
	if len(fields) < 20 {
		return nil, fmt.Errorf("process %d: cannot read /proc/%d/stat", pid, pid)
	}
	return fields, nil
}
