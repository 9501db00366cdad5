package jobs

import (
	"strings"
	"time"

	"kube-queue.dev/kube-queue/test/perf/report"
	"kube-queue.dev/kube-queue/test/perf/rig"
)

// diary has the times of the jobs whose names start with a prefix. Each is the time of a response to a write. It reads the
// entries of the audit log in any order.
type diary struct {
	prefix string
	counts rig.Counts
	// created has the jobs that were suspended when they were created.
	created, released map[string]time.Time
}

func newDiary(prefix string) *diary {
	return &diary{prefix, rig.Counts{}, map[string]time.Time{}, map[string]time.Time{}}
}

// see processes an entry.
func (d *diary) see(e *rig.Entry) {
	d.counts.Add(e)
	if e.Resource != "jobs" || e.Namespace != Namespace || e.Subresource != "" || !e.Whole || !strings.HasPrefix(e.Name, d.prefix) {
		return
	}
	switch before := d.released[e.Name]; {
	case e.Verb == "create":
		if e.Suspended {
			d.created[e.Name] = e.Answered
		}
	case e.Verb != "delete" && !e.Suspended && (before.IsZero() || e.Answered.Before(before)):
		d.released[e.Name] = e.Answered
	}
}

// releases returns the times from the response to the create of each job to the response to the write that unsuspended it.
func (d *diary) releases() report.Durations {
	var all report.Durations
	for name, created := range d.created {
		if released, ok := d.released[name]; ok {
			all = append(all, released.Sub(created))
		}
	}
	return all
}

// Outcome has the measurements of the jobs of a queue.
type Outcome struct {
	queue   Queue
	options Options
	// wall is the time from the first create to the end of the last job.
	wall     time.Duration
	releases report.Durations
	counts   rig.Counts
	use      rig.Use
}

// The bars, valid on a machine without other load.
var (
	// writesAtOnce is for a job that ran longer than 2 s, as all jobs do if all run at the same
	// time. writesWaited is for a job that also waited.
	writesAtOnce, writesWaited = 6.0, 8.0
	releaseHalf, releaseAll    = 30.0, 120.0 // ms, p50 and p99
	// burstAmple and burstWaiting are fractions of the completions per second without a queue.
	burstAmple, burstWaiting = 0.55, 0.45
)

// bars are those of an outcome; nil for other queues.
type bars struct{ writes, burst, half, all *float64 }

func (o *Outcome) bars() (b bars) {
	if o.queue.Name != KubeQueue {
		return b
	}
	b.writes = &writesAtOnce
	if o.options.Room > 0 {
		b.writes = &writesWaited
	}
	switch {
	case o.options.Rate > 0 && o.options.Room == 0:
		b.half, b.all = &releaseHalf, &releaseAll
	case o.options.Rate == 0 && o.options.Room == 0:
		b.burst = &burstAmple
	case o.options.Rate == 0:
		b.burst = &burstWaiting
	}
	return b
}

func (o *Outcome) rate() float64 { return float64(o.options.Jobs) / o.wall.Seconds() }

// Report adds the figures, compared with those without a queue if they are not nil.
func (o *Outcome) Report(r *report.Report, plain *Outcome) {
	name, count, bars := o.queue.Name, float64(o.options.Jobs), o.bars()
	s := r.Section(name)
	s.Count("jobs", o.options.Jobs)
	s.Add("all complete after", o.wall.Seconds(), "s", nil)
	s.Add("completions", o.rate(), "jobs/s", nil)
	if plain != nil {
		s.Add("completions, of those without a queue", o.rate()/plain.rate(), "", report.AtLeast(bars.burst))
	}
	if len(o.releases) > 0 {
		r.Section(name+": create to release").Spread(o.releases, report.AtMost(bars.half), report.AtMost(bars.all))
	}
	o.counts.Show(r.Section(name+": API writes a job"), count, report.AtMost(bars.writes))
	o.use.Show(r, name+": ", count, nil)
}
