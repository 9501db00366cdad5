package jobs

import (
	"strings"
	"time"

	"kube-queue.dev/kube-queue/test/perf/report"
	"kube-queue.dev/kube-queue/test/perf/rig"
)

// Delays are the times from the response to the create of each job to the response to a later
// write.
type Delays struct {
	// Release is the write that unsuspended the job. It is empty if jobs are not held.
	Release report.Durations
	// Pod is the create of the first pod, Bound its binding.
	Pod, Bound report.Durations
}

// moments are the times of one job. Each is the time of a response to a write.
type moments struct {
	created, released, pod, bound time.Time
	held                          bool
}

// diary has the times of the jobs whose names start with a prefix. It reads the entries of the
// audit log in any order.
type diary struct {
	prefix string
	counts rig.Counts
	jobs   map[string]*moments
	// owners has the jobs of pods, bound the times of the bindings of pods.
	owners map[string]string
	bound  map[string]time.Time
}

func newDiary(prefix string, counts rig.Counts) *diary {
	return &diary{prefix: prefix, counts: counts, jobs: map[string]*moments{}, owners: map[string]string{}, bound: map[string]time.Time{}}
}

// see processes an entry.
func (d *diary) see(e *rig.Entry) {
	d.counts.Add(e)
	if e.Namespace != Namespace || !e.OK {
		return
	}
	switch {
	case e.Resource == "pods" && e.Subresource == "binding":
		d.bound[e.Name] = e.Answered
	case e.Subresource != "" || !e.Whole:
	case e.Resource == "jobs" && strings.HasPrefix(e.Name, d.prefix):
		job := d.job(e.Name)
		switch {
		case e.Verb == "create":
			job.created, job.held = e.Answered, e.Suspended
		case e.Verb != "delete" && !e.Suspended:
			earlier(&job.released, e.Answered)
		}
	case e.Resource == "pods" && e.Verb == "create" && strings.HasPrefix(e.Owner, d.prefix):
		d.owners[e.Name] = e.Owner
		earlier(&d.job(e.Owner).pod, e.Answered)
	}
}

func (d *diary) job(name string) *moments {
	if d.jobs[name] == nil {
		d.jobs[name] = &moments{}
	}
	return d.jobs[name]
}

func earlier(at *time.Time, other time.Time) {
	if at.IsZero() || other.Before(*at) {
		*at = other
	}
}

func (d *diary) addDelays(delays *Delays) {
	for pod, at := range d.bound {
		if job := d.jobs[d.owners[pod]]; job != nil {
			earlier(&job.bound, at)
		}
	}
	add := func(to *report.Durations, job *moments, at time.Time) {
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
}
