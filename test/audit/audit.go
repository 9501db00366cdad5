package audit

import (
	"context"
	"io"

	"kube-queue.dev/kube-queue/test/audit/checks"
	"kube-queue.dev/kube-queue/test/audit/log"
	"kube-queue.dev/kube-queue/test/audit/model"
	"kube-queue.dev/kube-queue/test/audit/use"
)

// What callers say of the cluster, and what they are reported jobs and of quotas.
type (
	Options   = model.Options
	Life      = model.Life
	Moment    = model.Moment
	JobWrites = model.JobWrites
	QuotaUse  = use.QuotaUse
	KindView  = model.KindView
	JobView   = model.JobView
)

// ViewOf finds what the checker knows of a kind of job in one of its versions.
func ViewOf(group, version, resource string) (KindView, error) {
	return model.ViewOf(group, version, resource)
}

// Users of the two programs, unless the options say otherwise.
const (
	DefaultController = model.DefaultController
	DefaultExtensions = model.DefaultExtensions
)

// CheckNames are the names of all checks.
func CheckNames() []string { return checks.Names() }

// Overlap finds a time that two lists of spans share.
func Overlap(a, b []model.Span) (model.Span, bool) { return model.Overlap(a, b) }

// Log is a log that was read.
type Log struct{ *model.Log }

// ReadFile reads a log from a file, which may be compressed by gzip and may
// still be growing.
func ReadFile(path string) (*Log, error) {
	read, err := model.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return &Log{read}, nil
}

// Read reads a log. A last line without an end is left out.
func Read(r io.Reader) (*Log, error) {
	read, err := model.Read(r)
	if err != nil {
		return nil, err
	}
	return &Log{read}, nil
}

// Marker is a ConfigMap that a test wrote as its last deed.
type Marker = log.Marker

// WaitFor waits until the log at path holds the marker, and with it all that was done
// before.
func WaitFor(ctx context.Context, path string, marker Marker) error {
	return log.WaitFor(ctx, path, marker)
}

// Accounting holds the status of the tree that counts, as it is at the end of the
// log, against the sums of what the units hold and ask for. It lists where they
// differ, node by node. While units come and go the status may be behind.
func (l *Log) Accounting(options Options) ([]string, error) { return checks.Accounting(l.Log, options) }

// Use reports how well ResourceQuotas were used, in the namespaces given or else in all
// in which there were admissions under one. It takes the quota to be by ResourceQuota,
// whatever the options say of that.
func (l *Log) Use(options Options, namespaces ...string) ([]QuotaUse, error) {
	return use.Of(l.Log, options, namespaces...)
}
