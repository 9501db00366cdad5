package model

import (
	"encoding/json"
	"fmt"
)

// KindView is the checker's description of a kind, for tests that compare it with other code.
type KindView struct{ row *row }

// ViewOf returns the view of a kind in one of its versions.
func ViewOf(group, version, resource string) (KindView, error) {
	r := rowOf(group, version, resource)
	if r == nil {
		return KindView{}, fmt.Errorf("test/audit/model has no row for %s of %s/%s: add one to kinds.go", resource, group, version)
	}
	return KindView{r}, nil
}

// Kind returns the kind of the objects.
func (v KindView) Kind() string { return v.row.kind }

// Suspend returns the path of the suspend field, joined by dots.
func (v KindView) Suspend() string { return v.row.suspend }

// BySuspend reports whether the suspend field is a mark.
func (v KindView) BySuspend() bool { return v.row.byField }

// Operator returns the value of managedBy that names the kind's own operator, or "".
func (v KindView) Operator() string { return v.row.operator }

// ShowsQueuing reports whether a condition on the job shows that it waits.
func (v KindView) ShowsQueuing() bool { return v.row.queuing }

// JobView is the state of a job, read from its status.
type JobView struct {
	// Running reports whether the job runs, by its status.
	Running bool
	// Outcome is Succeeded or Failed after the job has ended.
	Outcome string
	// State is what kubectl shows.
	State string
}

// Job reads a job of the kind.
func (v KindView) Job(content map[string]any) (JobView, error) {
	data, err := json.Marshal(content)
	if err != nil {
		return JobView{}, fmt.Errorf("a %s: %w", v.row.kind, err)
	}
	o, err := newObject(data)
	if err != nil {
		return JobView{}, fmt.Errorf("a %s: %w", v.row.kind, err)
	}
	return JobView{Running: v.row.running(o), Outcome: string(v.row.end(o)), State: v.row.state(o)}, nil
}
