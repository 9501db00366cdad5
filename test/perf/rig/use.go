package rig

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"syscall"
	"time"

	"github.com/prometheus/procfs"

	"kube-queue.dev/kube-queue/test/perf/report"
)

// Usage is the resource use of a process.
type Usage struct {
	// CPU is the processor time since the start, in user and system mode.
	CPU time.Duration
	// Resident is the resident memory in bytes.
	Resident int64
}

// Use is the usage of each process by name.
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

// Show adds the processor time of each process, divided by count, and its memory. The bar is that of the
// processor time of the controller.
func (u Use) Show(r *report.Report, prefix string, count float64, bar *report.Bar) {
	cpu, memory := r.Section(prefix+"processor time"), r.Section(prefix+"memory")
	all := time.Duration(0)
	for _, name := range slices.Sorted(maps.Keys(u)) {
		all += u[name].CPU
		var its *report.Bar
		if name == Controller {
			its = bar
		}
		cpu.Add(name, report.Milliseconds(u[name].CPU)/count, "ms", its)
		memory.Add(name, report.MiB(u[name].Resident), "MiB", nil)
	}
	cpu.Add("all", report.Milliseconds(all)/count, "ms", nil)
}

// Use returns the use of all running processes.
func (r *Rig) Use() (Use, error) {
	parts, err := r.Cluster.Parts()
	if err != nil {
		return nil, err
	}
	pids, groups := map[int]string{os.Getpid(): Tool}, map[int]string{}
	for _, part := range parts {
		pids[part.PID] = part.Name
	}
	for _, program := range r.programsNow() {
		groups[program.PID] = program.Name
	}
	return readUse(pids, groups)
}

// readUse returns the use of processes and of process groups, which have these names.
func readUse(pids, groups map[int]string) (Use, error) {
	processes, err := procfs.AllProcs()
	if err != nil {
		return nil, err
	}
	use := Use{}
	for _, process := range processes {
		stat, err := process.Stat()
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ESRCH) {
			continue // the process has ended since it was listed
		}
		if err != nil {
			return nil, fmt.Errorf("process %d: %w", process.PID, err)
		}
		if name := cmp.Or(pids[stat.PID], groups[stat.PGRP]); name != "" {
			sum := use[name]
			sum.CPU += time.Duration(stat.UTime+stat.STime) * tick
			sum.Resident += int64(stat.ResidentMemory())
			use[name] = sum
		}
	}
	return use, nil
}

// tick is the unit of times of a process, which is the same on every Linux.
const tick = 10 * time.Millisecond
