package rig

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Usage is the resource use of a process.
type Usage struct {
	// CPU is the processor time since the start, in user and system mode.
	CPU time.Duration
	// Resident is the current resident memory, Peak its maximum, in bytes.
	Resident, Peak int64
}

// Use is the usage of each process by name. A restarted program counts from its first start.
type Use map[string]Usage

// Since returns the use since an earlier Use. Memory is that of the later one.
func (u Use) Since(earlier Use) Use {
	since := Use{}
	for name, usage := range u {
		usage.CPU -= earlier[name].CPU
		since[name] = usage
	}
	return since
}

func (u Use) add(name string, usage Usage) {
	sum := u[name]
	sum.CPU += usage.CPU
	sum.Resident += usage.Resident
	sum.Peak = max(sum.Peak, usage.Peak)
	u[name] = sum
}

// Use returns the use of all processes so far.
func (r *Rig) Use() (Use, error) {
	parts, err := r.Cluster.Parts()
	if err != nil {
		return nil, err
	}
	pids, groups := map[int]string{os.Getpid(): Tool}, map[int]string{}
	for _, part := range parts {
		pids[part.PID] = part.Name
	}
	use := Use{}
	r.mu.Lock()
	for name, program := range r.running {
		groups[program.PID] = name
	}
	for name, usage := range r.ended {
		use.add(name, usage)
	}
	r.mu.Unlock()
	return use, use.read(pids, groups)
}

// read adds the use of processes and of process groups, which have these names.
func (u Use) read(pids, groups map[int]string) error {
	folders, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return err
	}
	for _, folder := range folders {
		pid, err := strconv.Atoi(filepath.Base(folder))
		if err != nil {
			return err
		}
		group, err := syscall.Getpgid(pid)
		if err != nil {
			continue // the process has ended since it was listed
		}
		name := cmp.Or(pids[pid], groups[group])
		if name == "" {
			continue
		}
		usage, err := usageOf(folder)
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ESRCH) {
			continue
		}
		if err != nil {
			return fmt.Errorf("what %s uses: %w", name, err)
		}
		u.add(name, usage)
	}
	return nil
}

// tick is the unit of times in /proc/PID/stat, which is the same on every Linux.
const tick = 10 * time.Millisecond

func usageOf(folder string) (Usage, error) {
	stat, err := os.ReadFile(filepath.Join(folder, "stat"))
	if err != nil {
		return Usage{}, err
	}
	status, err := os.ReadFile(filepath.Join(folder, "status"))
	if err != nil {
		return Usage{}, err
	}
	return readUsage(string(stat), string(status))
}

func readUsage(stat, status string) (Usage, error) {
	var usage Usage
	// The name of the program is in parentheses and can contain any characters.
	fields := strings.Fields(stat[strings.LastIndexByte(stat, ')')+1:])
	const user, system = 11, 12
	if len(fields) <= system {
		return usage, fmt.Errorf("/proc/PID/stat is %q", stat)
	}
	for _, field := range []string{fields[user], fields[system]} {
		ticks, err := strconv.ParseInt(field, 10, 64)
		if err != nil {
			return usage, fmt.Errorf("/proc/PID/stat is %q: %w", stat, err)
		}
		usage.CPU += time.Duration(ticks) * tick
	}
	for line := range strings.Lines(status) {
		name, value, _ := strings.Cut(line, ":")
		amount := &usage.Resident
		switch name {
		case "VmHWM":
			amount = &usage.Peak
		case "VmRSS":
		default:
			continue
		}
		kib, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 10, 64)
		if err != nil {
			return usage, fmt.Errorf("/proc/PID/status: %q: %w", strings.TrimSpace(line), err)
		}
		*amount = kib << 10
	}
	return usage, nil
}

// usedBy returns the usage of a process that has exited.
func usedBy(state *os.ProcessState) Usage {
	usage := Usage{CPU: state.UserTime() + state.SystemTime()}
	if used, ok := state.SysUsage().(*syscall.Rusage); ok {
		usage.Peak = used.Maxrss << 10
	}
	return usage
}
