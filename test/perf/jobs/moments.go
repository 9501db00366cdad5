package jobs

import (
	"strings"
	"time"

	"kube-queue.dev/kube-queue/test/perf/trail"
)

// moments are the times of one job. Each is the time of a response to a write.
type moments struct {
	created, released, pod, bound time.Time
	held                          bool
}

// diary has the times of the jobs whose names start with a prefix. It reads the entries of the
// audit log in any order.
type diary struct {
	namespace, prefix string
	jobs              map[string]*moments
	// owners has the jobs of pods, bound the times of the bindings of pods.
	owners map[string]string
	bound  map[string]time.Time
	counts *trail.Counts
}

func newDiary(namespace, prefix string) *diary {
	return &diary{namespace: namespace, prefix: prefix, jobs: map[string]*moments{}, owners: map[string]string{}, bound: map[string]time.Time{}, counts: trail.NewCounts()}
}

// see processes an entry.
func (d *diary) see(e *trail.Entry) {
	d.counts.Add(e)
	if e.Namespace != d.namespace || !e.OK() {
		return
	}
	switch {
	case e.Resource == "jobs" && e.Subresource == "" && e.Whole:
		d.seeJob(e)
	case e.Creates("pods") && e.Whole && strings.HasPrefix(e.Owner, d.prefix):
		d.owners[e.Name] = e.Owner
		earlier(&d.job(e.Owner).pod, e.Answered)
	case e.Resource == "pods" && e.Subresource == "binding":
		d.bound[e.Name] = e.Answered
	}
}

func (d *diary) seeJob(e *trail.Entry) {
	if !strings.HasPrefix(e.Name, d.prefix) || e.Verb == "delete" {
		return
	}
	job := d.job(e.Name)
	switch {
	case e.Verb == "create":
		job.created, job.held = e.Answered, e.Suspended
	case !e.Suspended:
		earlier(&job.released, e.Answered)
	}
}

func (d *diary) job(name string) *moments {
	job := d.jobs[name]
	if job == nil {
		job = &moments{}
		d.jobs[name] = job
	}
	return job
}

func earlier(at *time.Time, other time.Time) {
	if at.IsZero() || other.Before(*at) {
		*at = other
	}
}

// Delays are the times from the response to the create of each job to the response to a later
// write.
type Delays struct {
	// Release is the write that unsuspended the job. It is empty if jobs are not held.
	Release []time.Duration
	// Pod is the create of the first pod, Bound its binding.
	Pod, Bound []time.Duration
}

func (d *diary) delays() Delays {
	for pod, at := range d.bound {
		if job := d.jobs[d.owners[pod]]; job != nil {
			earlier(&job.bound, at)
		}
	}
	var delays Delays
	add := func(to *[]time.Duration, job *moments, at time.Time) {
		if !job.created.IsZero() && !at.IsZero() {
			*to = append(*to, at.Sub(job.created))
		}
	}
	for _, job := range d.jobs {
		if job.held {
			add(&delays.Release, job, job.released)
		}
		add(&delays.Pod, job, job.pod)
		add(&delays.Bound, job, job.bound)
	}
	return delays
}
