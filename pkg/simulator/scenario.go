package simulator

import (
	"fmt"
	"math"
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
	// Name is unique in the namespace of the job.
	Name string
	// Namespace is the tenant of the job.
	Namespace string
	// QuotaName selects one of the quotas that list the namespace; empty for the first.
	QuotaName string
	// Submitted is the submission time, relative to the start of the trace.
	Submitted time.Duration
	// Runs is the run time after the release.
	Runs time.Duration
	// Limit is its maximum execution time; 0 means none.
	Limit time.Duration
	// Expected is the run time that its owner expects; 0 means none.
	Expected time.Duration
	// Requests is the sum over all pods of the job.
	Requests map[string]resource.Quantity
	// Priority is the priority in the queue; higher values go first.
	Priority int32
	// NonPreemptible jobs only use quota within the min of their quota.
	NonPreemptible bool
}

// Scenario is a trace with the quota tree and the policies of a simulation.
type Scenario struct {
	Jobs []Job
	// Tree is the root of the quota tree.
	Tree tree.Node
	// Options are the options of the tree.
	Options tree.Options
	// Core holds the options of the core, such as the policy of queues that are not in Queues.
	Core scheduler.Options
	// ReserveAfter is how long a job waits until room is reserved for it, in queues that are not in Queues; 0 means forever.
	ReserveAfter time.Duration
	// Preemption holds the eviction settings of queues that are not in Queues.
	Preemption scheduler.Preemption
	// Queues are the settings that an administrator gave to queues.
	Queues []scheduler.QueueChanged
	// Victims is what happens to the work of evicted jobs.
	Victims Victims
	// StopsIn is how long an evicted job keeps running until it has stopped. It uses its quota until then.
	StopsIn time.Duration
	// Progress, if set, is called periodically with the number of finished jobs and the
	// number of all jobs.
	Progress func(finished, all int)
	// Observer, if set, observes the simulation.
	Observer Observer
}

// Observer observes a simulation. Jobs are indexes in Scenario.Jobs, and times are relative to the start of the trace.
type Observer interface {
	// Waits is called for each job that is not released immediately after its submission. view returns the view of the
	// core after its decisions.
	Waits(job int, view func() *scheduler.View)
	// Starts is called for each release of a job, and Ends for each end.
	Starts(job int, at time.Duration)
	Ends(job int, at time.Duration)
}

// Victims is what happens to the work of evicted jobs.
type Victims string

const (
	// Restart means that an evicted job starts again from zero. It is the default.
	Restart Victims = "restart"
	// Resume means that it continues where it stopped.
	Resume Victims = "resume"
)

// Outcome is the result of a job.
type Outcome struct {
	// Released is true if the job was released and has not been evicted since. Start is the start of its last run. Start
	// and End are relative to the start of the trace.
	Released   bool
	Start, End time.Duration
	// FirstStart is the start of its first run, relative to the start of the trace.
	FirstStart time.Duration
	// FirstPods is the number of pods of its elastic pod set that it had then, if not all.
	FirstPods int32
	// Evictions is how often the job was evicted and stopped, Preempted and Reclaimed how often
	// for each reason.
	Evictions, Preempted, Reclaimed int
	// Lost is the run time that the job had to repeat after evictions.
	Lost time.Duration
	// Reason and Message describe why a job waits if it is not released at the end.
	Reason  wellknown.Reason
	Message string
	// Quota is the path of the quota group of the job; empty if it has none.
	Quota string
}

// Result is the result of a run.
type Result struct {
	// Outcomes are in the order of Scenario.Jobs.
	Outcomes []Outcome
	// Warnings are warnings about the tree.
	Warnings []string
	// Flushes counts lost wake-ups of the core that its safety flush found. It is 0 unless
	// the core has a defect.
	Flushes int
	// Interrupted are the runs that an eviction ended, in the order in which they stopped.
	Interrupted []Interruption
}

// Interruption is a run of a job that an eviction ended.
type Interruption struct {
	// Job is the index of the job in Scenario.Jobs.
	Job int
	// Start and End are relative to the start of the trace. The job waits again from End on.
	Start, End time.Duration
}

func seconds(d time.Duration) int32 { return int32(min(d/time.Second, math.MaxInt32)) }

// units converts the jobs to units of the core.
func (s *Scenario) units(names *resources.Names, start time.Time) ([]scheduler.Unit, error) {
	jobs := names.ID(quota.JobsResource)
	units := make([]scheduler.Unit, len(s.Jobs))
	for i, job := range s.Jobs {
		key := job.Namespace + "/" + job.Name
		if job.Submitted < 0 || job.Runs < 0 {
			return nil, fmt.Errorf("job %s: submission time (%v) and run time (%v) must be 0 or more", key, job.Submitted, job.Runs)
		}
		requests, err := resources.Request(names, job.Requests)
		if err != nil {
			return nil, fmt.Errorf("job %s: %w", key, err)
		}
		units[i] = scheduler.Unit{
			Key: key,
			Facts: scheduler.Facts{
				UID: key, QuotaName: job.QuotaName, Priority: job.Priority, MaxSeconds: seconds(job.Limit), Expected: scheduler.ExpectedOf(seconds(job.Expected)),
				Submitted: start.Add(job.Submitted).UnixMicro(),
				Demand:    quota.Demand{Requests: requests.With(jobs, 1), Preemptible: !job.NonPreemptible},
			},
		}
	}
	return units, nil
}
