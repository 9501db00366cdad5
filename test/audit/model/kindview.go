package model

import (
	"encoding/json"
	"fmt"
)

// KindView is what the checker knows of a kind of job, for tests that compare it
// with what others know.
type KindView struct{ row *row }

// ViewOf finds the view of a kind in one of its versions.
func ViewOf(group, version, resource string) (KindView, error) {
	r := rowOf(group, version, resource)
	if r == nil {
		return KindView{}, fmt.Errorf("test/audit/model has no row for %s of %s/%s: add one to kinds.go", resource, group, version)
	}
	return KindView{r}, nil
}

// Kind is how the kind's objects name it.
func (v KindView) Kind() string { return v.row.kind }

// Suspend is the path of the suspend field, joined by dots.
func (v KindView) Suspend() string { return v.row.suspend }

// BySuspend: the suspend field is a way to ask to be queued.
func (v KindView) BySuspend() bool { return v.row.byField }

// Operator is the value of managedBy that names the kind's own operator; empty
// where there is none.
func (v KindView) Operator() string { return v.row.operator }

// ShowsQueuing: a condition on the job shows that it waits.
func (v KindView) ShowsQueuing() bool { return v.row.queuing }

// JobView is what a job itself says of its life.
type JobView struct {
	// Running: the operator says that the job runs.
	Running bool
	// Outcome is Succeeded or Failed, once the job has ended.
	Outcome string
	// State is what a user sees.
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
