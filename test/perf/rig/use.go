package rig

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
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

// Watch adds a process group to the result of Use.
func (r *Rig) Watch(name string, group int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.watched[name] = group
}

// Use returns the use of all processes so far.
func (r *Rig) Use() (Use, error) {
	parts, err := r.Cluster.Parts()
	if err != nil {
		return nil, err
	}
	pids := map[string][]int{Tool: {os.Getpid()}}
	for _, part := range parts {
		pids[part.Name] = []int{part.PID}
	}
	use := Use{}
	r.mu.Lock()
	groups := maps.Clone(r.watched)
	for name, program := range r.running {
		pids[name] = []int{program.PID}
	}
	for name, usage := range r.ended {
		use.add(name, usage)
	}
	r.mu.Unlock()
	for name, group := range groups {
		if pids[name], err = members(group); err != nil {
			return nil, fmt.Errorf("what %s uses: %w", name, err)
		}
	}
	for name, all := range pids {
		for _, pid := range all {
			usage, err := usageOf(pid)
			if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ESRCH) {
				continue // it has ended meanwhile
			}
			if err != nil {
				return nil, fmt.Errorf("what %s uses: %w", name, err)
			}
			use.add(name, usage)
		}
	}
	return use, nil
}

// tick is the unit of times in /proc/PID/stat, which is the same on every Linux.
const tick = 10 * time.Millisecond

func usageOf(pid int) (Usage, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return Usage{}, err
	}
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
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
