package rig

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"

	"kube-queue.dev/kube-queue/test/audit/log"
	"kube-queue.dev/kube-queue/test/clustertest"
	"kube-queue.dev/kube-queue/test/perf/report"
)

// Kind is a group of writes that are counted together.
type Kind struct {
	// Agent is the program that sent them.
	Agent, Verb, Group, Resource, Subresource string
	// OK reports whether they succeeded.
	OK bool
}

// String names the kind, such as "job-extensions: patch jobs.batch/status".
func (k Kind) String() string {
	what := k.Agent + ": " + k.Verb + " " + k.Resource
	if k.Group != "" && k.Resource != "events" {
		what += "." + k.Group
	}
	if k.Subresource != "" {
		what += "/" + k.Subresource
	}
	if !k.OK {
		what += ", refused"
	}
	return what
}

// Entry is an answered write in the audit log.
type Entry struct {
	Kind
	// Name is empty for a generated name.
	Namespace, Name string
	Answered        time.Time
	// Whole reports that the object is in the log, which are those of Options.AuditObjects. Only then,
	// Suspended tells whether a job is suspended by the write.
	Whole, Suspended bool
}

// Log is an audit log that is read in parts, as a stream, because it has hundreds of megabytes.
// Unlike test/audit, it checks nothing.
type Log struct {
	rig  *Rig
	file *log.File
}

// Log returns the part of the log that begins now.
func (r *Rig) Log() (*Log, error) {
	l := &Log{r, log.Open(r.Cluster.AuditLog)}
	return l, l.file.Read(func(int, []byte) error { return nil })
}

// Read visits the writes up to now.
func (l *Log) Read(ctx context.Context, visit func(*Entry)) error {
	if err := l.rig.Cluster.CompleteAuditLog(ctx); err != nil {
		return err
	}
	return l.read(visit)
}

func (l *Log) read(visit func(*Entry)) error {
	return l.file.Read(func(number int, line []byte) error {
		if len(line) == 0 {
			return nil
		}
		entry, err := readEntry(line)
		if err != nil {
			return log.NoEntry(number, err)
		}
		if entry != nil && !strings.HasPrefix(entry.Name, clustertest.MarkerPrefix) {
			visit(entry)
		}
		return nil
	})
}

// readEntry returns nil for anything but an answered write.
func readEntry(line []byte) (*Entry, error) {
	e, err := log.Parse(line)
	if err != nil || !e.Write() {
		return nil, err
	}
	ref := e.ObjectRef
	entry := &Entry{
		Kind:      Kind{cmp.Or(e.Agent(), "unknown"), e.Verb, ref.APIGroup, ref.Resource, ref.Subresource, log.Success(e.Code())},
		Namespace: ref.Namespace, Name: ref.Name, Answered: e.StageTimestamp,
	}
	if len(e.ResponseObject) == 0 || !entry.OK {
		return entry, nil
	}
	var object struct {
		Kind string
		Spec struct{ Suspend bool }
	}
	if err := json.Unmarshal(e.ResponseObject, &object); err != nil {
		return nil, err
	}
	entry.Whole, entry.Suspended = object.Kind != "Status", object.Spec.Suspend
	return entry, nil
}

// Counts counts writes by kind.
type Counts map[Kind]int

// Add counts a write.
func (c Counts) Add(e *Entry) { c[e.Kind]++ }

// rarely is of how many writes a unit or job a kind is not shown by itself.
const rarely = 0.02

// Show adds the numbers of writes, divided by count. The bar is that of kube-queue's successful writes that grow with
// the number of jobs, which those on Queues and trees do not.
func (c Counts) Show(s *report.Section, count float64, bar *report.Bar) {
	sum := func(name string, bar *report.Bar, asked func(Kind) bool) {
		done := 0
		for kind, n := range c {
			if kind.OK && asked(kind) {
				done += n
			}
		}
		s.Add(name, float64(done)/count, "", bar)
	}
	ours := func(k Kind) bool { return k.Agent == Controller || k.Agent == Extensions }
	shared := func(k Kind) bool { return k.Resource == "queues" || k.Resource == "elasticquotatrees" }
	sum("all", nil, func(Kind) bool { return true })
	sum("kube-queue, on jobs, units and events", bar, func(k Kind) bool { return ours(k) && !shared(k) })
	sum("kube-queue, on Queues and trees", nil, func(k Kind) bool { return ours(k) && shared(k) })
	byName := func(a, b Kind) int { return cmp.Compare(a.String(), b.String()) }
	for _, kind := range slices.SortedFunc(maps.Keys(c), byName) {
		if part := float64(c[kind]) / count; part >= rarely {
			s.Add(kind.String(), part, "", nil)
		}
	}
}
