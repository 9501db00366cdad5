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

// Usage is what a process has used.
type Usage struct {
	// CPU is the processor time since it began, in its own code and in the kernel's.
	CPU time.Duration
	// Resident is the memory that it has now, Peak the most it ever had, in bytes.
	Resident, Peak int64
}

// Use is what each process used, by name. A program that was started again counts
// from its first start.
type Use map[string]Usage

// Since is what was used after an earlier Use. Memory is that of the later one.
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

// Watch has Use report the processes of another group, as long as they are there.
func (r *Rig) Watch(name string, group int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.watched[name] = group
}

// Use is what all processes have used so far.
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
	// The name of the program is in brackets and may hold anything.
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

// usedBy is what a process used in all that has ended.
func usedBy(state *os.ProcessState) Usage {
	usage := Usage{CPU: state.UserTime() + state.SystemTime()}
	if used, ok := state.SysUsage().(*syscall.Rusage); ok {
		usage.Peak = used.Maxrss << 10
	}
	return usage
}
