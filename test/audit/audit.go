package audit

import (
	"context"
	"io"

	"kube-queue.dev/kube-queue/test/audit/budget"
	"kube-queue.dev/kube-queue/test/audit/checks"
	"kube-queue.dev/kube-queue/test/audit/facts"
	"kube-queue.dev/kube-queue/test/audit/log"
	"kube-queue.dev/kube-queue/test/audit/use"
)

// Options of a check, and results for jobs and quotas.
type (
	Options   = facts.Options
	Moment    = facts.Moment
	JobWrites = budget.JobWrites
	QuotaUse  = use.QuotaUse
	KindView  = *facts.Row
	JobView   = facts.JobView
)

// ViewOf returns how the checker reads a version of a kind of job.
func ViewOf(group, version, resource string) (KindView, error) {
	return facts.ViewOf(group, version, resource)
}

// Default users of the two programs.
const (
	DefaultController = facts.DefaultController
	DefaultExtensions = facts.DefaultExtensions
)

// CheckNames returns the names of all checks.
func CheckNames() []string { return checks.Names() }

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

// Marker is a ConfigMap that a test creates as its last write.
type Marker = log.Marker

// WaitFor waits until the log at path contains the marker, and therefore all earlier writes.
func WaitFor(ctx context.Context, path string, marker Marker) error {
	return log.WaitFor(ctx, path, marker)
}

// Accounting compares the status of the quota tree in force at the end of the log with the
// sums over all units and their pods, and lists the differences node by node. While they change, the
// status may be behind.
func (l *Log) Accounting(options Options) ([]string, error) { return checks.Accounting(l.Log, options) }

// Use measures how well ResourceQuotas were used, in the given namespaces, or without any in
// all namespaces with admissions under a ResourceQuota. It assumes the backend resourcequota,
// regardless of the options.
func (l *Log) Use(options Options, namespaces ...string) ([]QuotaUse, error) {
	return use.Of(l.Log, options, namespaces...)
}
