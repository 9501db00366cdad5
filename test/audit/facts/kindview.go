package facts

import (
	"encoding/json"
	"fmt"
)

// ViewOf returns the row of a kind in one of its versions, for tests that compare it with other code.
func ViewOf(group, version, resource string) (*Row, error) {
	r := RowOf(group, version, resource)
	if r == nil {
		return nil, fmt.Errorf("test/audit/facts has no row for %s of %s/%s: add one to kinds.go", resource, group, version)
	}
	return r, nil
}

// Rows returns the rows of all kinds.
func Rows() []*Row { return rows }

// Kind returns the kind of the objects.
func (r *Row) Kind() string { return r.kind }

// Resource returns the name of the resource.
func (r *Row) Resource() string { return r.resource }

// Version returns the version, or "" if the row is for all versions.
func (r *Row) Version() string { return r.version }

// Suspend returns the path of the suspend field, joined by dots.
func (r *Row) Suspend() string { return r.suspend }

// BySuspend reports whether the suspend field is a mark.
func (r *Row) BySuspend() bool { return r.byField }

// Operator returns the value of managedBy that names the kind's own operator, or "".
func (r *Row) Operator() string { return r.operator }

// ShowsQueuing reports whether a condition on the job shows that it waits. It takes two more writes.
func (r *Row) ShowsQueuing() bool { return r.queuing }

// Sized reports whether the spec alone determines how many pods a job has at once.
func (r *Row) Sized() bool { return r.pods != nil }

// HasClusters reports whether a job has not ended while its RayCluster exists.
func (r *Row) HasClusters() bool { return r.clusters }

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
func (r *Row) Job(content map[string]any) (JobView, error) {
	data, err := json.Marshal(content)
	if err != nil {
		return JobView{}, fmt.Errorf("a %s: %w", r.kind, err)
	}
	o, err := newObject(data)
	if err != nil {
		return JobView{}, fmt.Errorf("a %s: %w", r.kind, err)
	}
	return JobView{Running: r.running(o), Outcome: string(r.end(o)), State: r.state(o)}, nil
}

// Group returns the API group.
func (r *Row) Group() string { return r.group }
