package audit

import (
	"context"
	"io"

	"kube-queue.dev/kube-queue/test/audit/checks"
	"kube-queue.dev/kube-queue/test/audit/log"
	"kube-queue.dev/kube-queue/test/audit/model"
	"kube-queue.dev/kube-queue/test/audit/use"
)

// Options of a check, and results for jobs and quotas.
type (
	Options   = model.Options
	Life      = model.Life
	Moment    = model.Moment
	JobWrites = model.JobWrites
	QuotaUse  = use.QuotaUse
	KindView  = model.KindView
	JobView   = model.JobView
)

// ViewOf returns how the checker reads a version of a kind of job.
func ViewOf(group, version, resource string) (KindView, error) {
	return model.ViewOf(group, version, resource)
}

// Default users of the two programs.
const (
	DefaultController = model.DefaultController
	DefaultExtensions = model.DefaultExtensions
)

// CheckNames returns the names of all checks.
func CheckNames() []string { return checks.Names() }

// Overlap returns a time that two lists of spans share.
func Overlap(a, b []model.Span) (model.Span, bool) { return model.Overlap(a, b) }

// Log is the content of an audit log.
type Log struct{ *model.Log }

// ReadFile reads a log from a file. The file may be compressed with gzip and may still be
// growing.
func ReadFile(path string) (*Log, error) {
	read, err := model.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return &Log{read}, nil
}

// Read reads a log. It ignores an incomplete last line.
func Read(r io.Reader) (*Log, error) {
	read, err := model.Read(r)
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
