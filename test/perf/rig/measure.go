package rig

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/prometheus/procfs"

	"kube-queue.dev/kube-queue/test/audit/log"
	"kube-queue.dev/kube-queue/test/clustertest"
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

// Since returns the use since an earlier Use. The memory is not a difference.
func (u Use) Since(earlier Use) Use {
	since := Use{}
	for name, usage := range u {
		usage.CPU -= earlier[name].CPU
		since[name] = usage
	}
	return since
}

// Show adds the processor time of each process, divided by count, and its memory. The bar is for the processor time
// of the controller.
func (u Use) Show(r *Report, prefix string, count float64, bar Bar) {
	cpu, memory := r.Section(prefix+"processor time"), r.Section(prefix+"memory")
	all := time.Duration(0)
	for _, name := range slices.Sorted(maps.Keys(u)) {
		all += u[name].CPU
		cpu.Add(name, Milliseconds(u[name].CPU)/count, "ms", map[string]Bar{Controller: bar}[name])
		memory.Add(name, MiB(u[name].Resident), "MiB")
	}
	cpu.Add("all", Milliseconds(all)/count, "ms")
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
			sum.CPU += time.Duration(stat.CPUTime() * float64(time.Second))
			sum.Resident += int64(stat.ResidentMemory())
			use[name] = sum
		}
	}
	return use, nil
}

// Writes visits the answered writes in the audit log since the last call. It streams the log, which has hundreds of
// megabytes. Unlike test/audit, it checks nothing.
func (r *Rig) Writes(ctx context.Context, visit func(*log.Entry)) error {
	if err := r.Cluster.CompleteAuditLog(ctx); err != nil {
		return err
	}
	return r.log.Read(func(number int, line []byte) error {
		if len(line) == 0 {
			return nil
		}
		e, err := log.Parse(line)
		if err != nil {
			return log.NoEntry(number, err)
		}
		if e.Write() && !strings.HasPrefix(e.ObjectRef.Name, clustertest.MarkerPrefix) {
			visit(e)
		}
		return nil
	})
}

// Counts counts writes by kind, such as "job-extensions: patch jobs.batch/status". Successful writes are also counted
// in totals.
type Counts map[string]int

// The totals: all writes, those of kube-queue that grow with the number of jobs, and those that do not.
const (
	allWrites    = "all"
	writesOnJobs = "kube-queue, on jobs, units and events"
	writesShared = "kube-queue, on Queues and trees"
)

// Add counts a write.
func (c Counts) Add(e *log.Entry) {
	ref, agent := e.ObjectRef, cmp.Or(e.Agent(), "unknown")
	kind := agent + ": " + e.Verb + " " + ref.Resource
	if ref.APIGroup != "" && ref.Resource != "events" {
		kind += "." + ref.APIGroup
	}
	if ref.Subresource != "" {
		kind += "/" + ref.Subresource
	}
	if !log.Success(e.Code()) {
		c[kind+", refused"]++
		return
	}
	c[kind]++
	c[allWrites]++
	switch {
	case agent != Controller && agent != Extensions:
	case ref.Resource == "queues" || ref.Resource == "elasticquotatrees":
		c[writesShared]++
	default:
		c[writesOnJobs]++
	}
}

// rarely is the number of writes per unit or job below which a kind is not shown separately.
const rarely = 0.02

// Show adds the numbers of writes, divided by count. The bar is for kube-queue's writes that grow with the number of
// jobs.
func (c Counts) Show(s *Section, count float64, bar Bar) {
	together := []string{allWrites, writesOnJobs, writesShared}
	s.Add(allWrites, float64(c[allWrites])/count, "")
	s.Add(writesOnJobs, float64(c[writesOnJobs])/count, "", bar)
	s.Add(writesShared, float64(c[writesShared])/count, "")
	for _, kind := range slices.Sorted(maps.Keys(c)) {
		if part := float64(c[kind]) / count; part >= rarely && !slices.Contains(together, kind) {
			s.Add(kind, part, "")
		}
	}
}
