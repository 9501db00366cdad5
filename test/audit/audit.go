package audit

import (
	"fmt"
	"io"

	"kube-queue.dev/kube-queue/test/audit/budget"
	"kube-queue.dev/kube-queue/test/audit/checks"
	"kube-queue.dev/kube-queue/test/audit/facts"
)

// Options of a check, and results for jobs.
type (
	Options   = facts.Options
	Moment    = facts.Moment
	JobWrites = budget.JobWrites
	KindView  = *facts.Row
	JobView   = facts.JobView
)

// ViewOf returns how the checker reads a version of a kind of job.
func ViewOf(group, version, resource string) (KindView, error) {
	r := facts.RowOf(group, version, resource)
	if r == nil {
		return nil, fmt.Errorf("test/audit/facts has no row for %s of %s/%s: add one to kinds.go", resource, group, version)
	}
	return r, nil
}

// Users of the two programs.
const (
	Controller = facts.Controller
	Extensions = facts.Extensions
)

// Log is the content of an audit log.
type Log struct{ *facts.Log }

// ReadFile reads a log from a file. The file may be compressed with gzip and may still be
// growing.
func ReadFile(path string) (*Log, error) {
	read, err := facts.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return &Log{read}, nil
}

// Read reads a log. It ignores an incomplete last line.
func Read(r io.Reader) (*Log, error) {
	read, err := facts.Read(r)
	if err != nil {
		return nil, err
	}
	return &Log{read}, nil
}

// Accounting compares the status of the quota tree in force at the end of the log with the
// sums over all units and their pods, and lists the differences node by node. While they change, the
// status may be behind.
func (l *Log) Accounting(options Options) ([]string, error) { return checks.Accounting(l.Log, options) }
