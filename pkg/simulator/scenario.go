package simulator

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	"kube-queue.dev/kube-queue/pkg/quota"
	"kube-queue.dev/kube-queue/pkg/quota/tree"
	"kube-queue.dev/kube-queue/pkg/resources"
	"kube-queue.dev/kube-queue/pkg/scheduler"
)

// Job is a job of a trace.
type Job struct {
	// Name of the job, unique in its namespace.
	Name string
	// Namespace is the tenant that it belongs to.
	Namespace string
	// QuotaName picks among the quotas of the namespace; empty: the first.
	QuotaName string
	// Submitted is when, from the start of the trace.
	Submitted time.Duration
	// Runs is for how long, once released.
	Runs time.Duration
	// Requests of all its pods.
	Requests map[string]resource.Quantity
	// Priority in its queue, the greater first.
	Priority int32
	// NonPreemptible jobs stay within the min of their quota.
	NonPreemptible bool
}

// Scenario is a trace and what it is played against.
type Scenario struct {
	Jobs []Job
	// Tree of quotas.
	Tree tree.Node
	// Options of the tree.
	Options tree.Options
	// Core options: the policy of queues that Queues says nothing of.
	Core scheduler.Options
	// Queues as an administrator has set them.
	Queues []scheduler.QueueChanged
	// Progress, when set, is called now and then with how many jobs have come to an
	// end, of how many.
	Progress func(ended, all int)
}

// Outcome is what became of a job.
type Outcome struct {
	// Released reports whether it was; Start is when, End when it ended, from the start
	// of the trace.
	Released   bool
	Start, End time.Duration
	// Reason why a job that was not released waits, and the sentence that tells it.
	Reason  wellknown.Reason
	Message string
	// Quota is the path of the group that it belongs to; empty when it has none.
	Quota string
}

// Result of a run.
type Result struct {
	// Outcomes in the order of Scenario.Jobs.
	Outcomes []Outcome
	// Warnings about the tree.
	Warnings []string
	// Flushes counts wake-ups that the core had lost, and its safety net found. It is
	// 0 unless there is a defect.
	Flushes int
	// Writes is how many writes of units the core asked for.
	Writes int
}

// units makes of each job what the core knows of it.
func (s *Scenario) units(names *resources.Names, start time.Time) ([]scheduler.Unit, error) {
	jobs := names.ID(quota.JobsResource)
	units := make([]scheduler.Unit, len(s.Jobs))
	for i, job := range s.Jobs {
		key := job.Namespace + "/" + job.Name
		if job.Submitted < 0 || job.Runs < 0 {
			return nil, fmt.Errorf("job %s: submitted %v after the start of the trace and runs %v: neither may be negative", key, job.Submitted, job.Runs)
		}
		requests, err := resources.Request(names, job.Requests)
		if err != nil {
			return nil, fmt.Errorf("job %s: %w", key, err)
		}
		units[i] = scheduler.Unit{
			Key: key,
			Facts: scheduler.Facts{
				UID: key, QuotaName: job.QuotaName, Priority: job.Priority,
				Submitted: start.Add(job.Submitted).UnixMicro(),
				Demand:    quota.Demand{Requests: requests.With(jobs, 1), Preemptible: !job.NonPreemptible},
			},
		}
	}
	return units, nil
}
