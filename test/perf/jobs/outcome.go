package jobs

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"kube-queue.dev/kube-queue/test/perf/report"
	"kube-queue.dev/kube-queue/test/perf/rig"
)

// Turn is one batch of jobs.
type Turn struct {
	Jobs int
	// Submitted is the time from the first create to the response to the last create, Wall to the
	// end of the last job.
	Submitted, Wall time.Duration
}

// PerSecond returns the number of jobs completed per second.
func (t Turn) PerSecond() float64 { return float64(t.Jobs) / t.Wall.Seconds() }

// Outcome has the measurements of all turns of a queue.
type Outcome struct {
	Queue  Queue
	Turns  []Turn
	Delays Delays
	Counts rig.Counts
	Use    rig.Use
}

// NewOutcome returns an outcome without turns.
func NewOutcome(queue Queue) *Outcome {
	return &Outcome{Queue: queue, Counts: rig.Counts{}, Use: rig.Use{}}
}

func (o *Outcome) addUse(use rig.Use) {
	for name, usage := range use {
		sum := o.Use[name]
		sum.CPU += usage.CPU
		sum.Peak = max(sum.Peak, usage.Peak)
		o.Use[name] = sum
	}
}

func (o *Outcome) jobs() float64 {
	jobs := 0
	for _, turn := range o.Turns {
		jobs += turn.Jobs
	}
	return float64(jobs)
}

// The bars, valid on a machine without other load.
const (
	// writesAtOnce is for a job that ran longer than 2 s, as all jobs do if all run at the same
	// time. writesWaited is for a job that also waited.
	writesAtOnce, writesWaited = 6, 8
	releaseHalf, releaseAll    = 30, 120 // ms, p50 and p99
	// burstAmple and burstWaiting are fractions of the completions per second without a queue.
	burstAmple, burstWaiting = 0.55, 0.45
)

// Report adds the figures of all outcomes. If jobs without a queue were measured too, the other
// queues are compared with them, turn by turn.
func Report(r *report.Report, options Options, outcomes []*Outcome) {
	for _, o := range outcomes {
		o.rates(r)
		o.delays(r, options)
		o.writes(r, options)
		o.use(r)
	}
	plain := slices.IndexFunc(outcomes, func(o *Outcome) bool { return o.Queue.Name == None })
	for _, o := range outcomes {
		if plain >= 0 && o.Queue.Name != None {
			o.compare(r, options, outcomes[plain])
		}
	}
}

func (o *Outcome) rates(r *report.Report) {
	s := r.Section(o.Queue.Name)
	s.Add("jobs", o.jobs(), "", nil)
	var rates []float64
	for i, turn := range o.Turns {
		rates = append(rates, turn.PerSecond())
		s.Add(fmt.Sprintf("turn %d, completions", i+1), turn.PerSecond(), "jobs/s", nil)
		s.Add(fmt.Sprintf("turn %d, all created after", i+1), turn.Submitted.Seconds(), "s", nil)
		s.Add(fmt.Sprintf("turn %d, all complete after", i+1), turn.Wall.Seconds(), "s", nil)
	}
	s.Add("completions, median", median(rates), "jobs/s", nil)
}

func median(values []float64) float64 {
	slices.Sort(values)
	return (values[(len(values)-1)/2] + values[len(values)/2]) / 2
}

func (o *Outcome) delays(r *report.Report, options Options) {
	for _, d := range []struct {
		name  string
		times report.Durations
	}{{"create to release", o.Delays.Release}, {"create to first pod", o.Delays.Pod}, {"create to pod bound", o.Delays.Bound}} {
		if len(d.times) == 0 {
			continue
		}
		var half, all *report.Bar
		if d.name == "create to release" && o.Queue.Name == KubeQueue && options.Rate > 0 && options.Room == 0 {
			half, all = report.AtMost(releaseHalf), report.AtMost(releaseAll)
		}
		s := r.Section(o.Queue.Name + ": " + d.name)
		s.Count("jobs", len(d.times))
		s.Spread(d.times, half, all)
	}
}

// rarely is of how many writes a job a kind is reported by itself; the rest of an agent's
// is in its sum.
const rarely = 0.02

func (o *Outcome) writes(r *report.Report, options Options) {
	s := r.Section(o.Queue.Name + ": API writes a job")
	sum := func(name string, bar *report.Bar, asked func(rig.Kind) bool) {
		done, refused := o.Counts.Sum(asked)
		s.Add(name, float64(done)/o.jobs(), "", bar)
		if refused > 0 {
			s.Add(name+", refused", float64(refused)/o.jobs(), "", nil)
		}
	}
	sum("all", nil, func(rig.Kind) bool { return true })
	if o.Queue.Name == KubeQueue {
		bar := report.AtMost(writesAtOnce)
		if options.Room > 0 {
			bar = report.AtMost(writesWaited)
		}
		sum("kube-queue, on jobs, units and events", bar, rig.Kind.ByKubeQueue)
		sum("kube-queue, of these events", nil, func(k rig.Kind) bool { return k.ByKubeQueue() && k.Resource == "events" })
		sum("kube-queue, on Queues and trees", nil, rig.Kind.Shared)
	}
	agent := ""
	for _, row := range o.Counts.Rows() {
		if row.Agent != agent {
			agent = row.Agent
			sum(agent, nil, func(k rig.Kind) bool { return k.Agent == agent })
		}
		if part := float64(row.Done) / o.jobs(); part >= rarely {
			s.Add("  "+row.What(), part, "", nil)
		}
	}
}

func (o *Outcome) use(r *report.Report) {
	// The one that dominates comes first.
	names := slices.SortedFunc(maps.Keys(o.Use), func(a, b string) int {
		return cmp.Or(cmp.Compare(o.Use[b].CPU, o.Use[a].CPU), cmp.Compare(a, b))
	})
	names = slices.DeleteFunc(names, func(name string) bool { return o.Use[name].CPU == 0 })
	var all time.Duration
	for _, name := range names {
		all += o.Use[name].CPU
	}
	s := r.Section(o.Queue.Name + ": CPU and memory")
	s.Add("all, CPU a job", report.Milliseconds(all)/o.jobs(), "ms", nil)
	for _, name := range names {
		s.Add(name+", CPU a job", report.Milliseconds(o.Use[name].CPU)/o.jobs(), "ms", nil)
	}
	for _, name := range names {
		s.Add(name+", peak memory", report.MiB(o.Use[name].Peak), "MiB", nil)
	}
}

func (o *Outcome) compare(r *report.Report, options Options, plain *Outcome) {
	s := r.Section(o.Queue.Name + " compared with " + None)
	var ratios []float64
	for i, turn := range o.Turns {
		ratios = append(ratios, turn.PerSecond()/plain.Turns[i].PerSecond())
		s.Add(fmt.Sprintf("turn %d, completions/s, as a part", i+1), ratios[i], "", nil)
	}
	var bar *report.Bar
	if o.Queue.Name == KubeQueue && options.Rate == 0 {
		bar = report.AtLeast(burstAmple)
		if options.Room > 0 {
			bar = report.AtLeast(burstWaiting)
		}
	}
	s.Add("completions/s, as a part, median", median(ratios), "", bar)
}
