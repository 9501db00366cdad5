package jobs

import (
	"fmt"
	"slices"
	"time"

	"kube-queue.dev/kube-queue/test/perf/report"
	"kube-queue.dev/kube-queue/test/perf/rig"
	"kube-queue.dev/kube-queue/test/perf/trail"
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
	Counts *trail.Counts
	Use    rig.Use
}

// NewOutcome returns an outcome without turns.
func NewOutcome(queue Queue) *Outcome {
	return &Outcome{Queue: queue, Counts: trail.NewCounts(), Use: rig.Use{}}
}

func (d *Delays) add(other Delays) {
	d.Release = append(d.Release, other.Release...)
	d.Pod = append(d.Pod, other.Pod...)
	d.Bound = append(d.Bound, other.Bound...)
}

func (o *Outcome) addUse(use rig.Use) {
	for name, usage := range use {
		sum := o.Use[name]
		sum.CPU += usage.CPU
		sum.Resident = max(sum.Resident, usage.Resident)
		sum.Peak = max(sum.Peak, usage.Peak)
		o.Use[name] = sum
	}
}

func (o *Outcome) jobs() int {
	jobs := 0
	for _, turn := range o.Turns {
		jobs += turn.Jobs
	}
	return jobs
}

// Ours reports whether a write is by one of kube-queue's programs.
func Ours(k trail.Kind) bool { return k.Agent == rig.Controller || k.Agent == rig.Extensions }

// Status reports whether a write of kube-queue is on the status of a Queue or of the tree, or
// creates a Queue. Their number does not grow with the number of jobs.
func Status(k trail.Kind) bool {
	return Ours(k) && (k.Resource == "queues" || k.Resource == "elasticquotatrees")
}

// OfJobs reports whether a write of kube-queue counts in the budget of a job.
func OfJobs(k trail.Kind) bool { return Ours(k) && !Status(k) }

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
	if plain < 0 {
		return
	}
	for _, o := range outcomes {
		if o.Queue.Name != None {
			o.compare(r, options, outcomes[plain])
		}
	}
}

func (o *Outcome) rates(r *report.Report) {
	var rates []float64
	for _, turn := range o.Turns {
		rates = append(rates, turn.PerSecond())
	}
	s := r.Section(o.Queue.Name)
	s.Count("jobs", o.jobs())
	s.Count("turns", len(o.Turns))
	spread(s, "completions", "jobs/s", rates, nil)
	for i, turn := range o.Turns {
		s.Add(fmt.Sprintf("turn %d, all created after", i+1), turn.Submitted.Seconds(), "s", nil)
		s.Add(fmt.Sprintf("turn %d, all complete after", i+1), turn.Wall.Seconds(), "s", nil)
	}
}

// spread adds the minimum, median and maximum. The bar applies to the median.
func spread(s *report.Section, name, unit string, values []float64, bar *report.Bar) {
	slices.Sort(values)
	s.Add(name+", min", values[0], unit, nil)
	s.Add(name+", median", median(values), unit, bar)
	s.Add(name+", max", values[len(values)-1], unit, nil)
}

func median(sorted []float64) float64 {
	half := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[half]
	}
	return (sorted[half-1] + sorted[half]) / 2
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
		for _, p := range []struct {
			name string
			part float64
			bar  *report.Bar
		}{{"p50", 0.5, half}, {"p90", 0.9, nil}, {"p99", 0.99, all}, {"max", 1, nil}} {
			s.Add(p.name, report.Milliseconds(d.times.Percentile(p.part)), "ms", p.bar)
		}
	}
}

func (o *Outcome) writes(r *report.Report, options Options) {
	jobs := float64(o.jobs())
	s := r.Section(o.Queue.Name + ": API writes a job")
	sum := func(name string, bar *report.Bar, asked func(trail.Kind) bool) {
		done, refused := o.Counts.Sum(asked)
		s.Add(name, float64(done)/jobs, "", bar)
		if refused > 0 {
			s.Add(name+", refused", float64(refused)/jobs, "", nil)
		}
	}
	sum("all", nil, func(trail.Kind) bool { return true })
	if o.Queue.Name == KubeQueue {
		bar := report.AtMost(writesAtOnce)
		if options.Room > 0 {
			bar = report.AtMost(writesWaited)
		}
		sum("kube-queue, on jobs, units and events", bar, OfJobs)
		sum("kube-queue, of these events", nil, func(k trail.Kind) bool { return OfJobs(k) && k.Resource == "events" })
		sum("kube-queue, on Queues and trees", nil, Status)
	}
	for _, agent := range agents(o.Counts) {
		sum(agent, nil, func(k trail.Kind) bool { return k.Agent == agent })
		for _, row := range o.Counts.Rows() {
			if part := float64(row.Done) / jobs; row.Agent == agent && part >= rarely {
				s.Add("  "+row.What(), part, "", nil)
			}
		}
	}
}

// rarely is of how many writes a job a kind is reported by itself; the rest of an agent's
// is in its sum.
const rarely = 0.02

func agents(counts *trail.Counts) []string {
	var all []string
	for _, row := range counts.Rows() {
		if !slices.Contains(all, row.Agent) {
			all = append(all, row.Agent)
		}
	}
	return all
}

func (o *Outcome) use(r *report.Report) {
	names := make([]string, 0, len(o.Use))
	var all time.Duration
	for name, usage := range o.Use {
		if usage.CPU > 0 {
			names = append(names, name)
			all += usage.CPU
		}
	}
	// The one that dominates comes first.
	slices.SortFunc(names, func(a, b string) int {
		if d := o.Use[b].CPU - o.Use[a].CPU; d != 0 {
			return int(d)
		}
		return slices.Compare([]byte(a), []byte(b))
	})
	s := r.Section(o.Queue.Name + ": CPU and memory")
	s.Add("all, CPU a job", report.Milliseconds(all)/float64(o.jobs()), "ms", nil)
	for _, name := range names {
		s.Add(name+", CPU a job", report.Milliseconds(o.Use[name].CPU)/float64(o.jobs()), "ms", nil)
	}
	for _, name := range names {
		s.Add(name+", peak memory", report.MiB(o.Use[name].Peak), "MiB", nil)
	}
}

func (o *Outcome) compare(r *report.Report, options Options, plain *Outcome) {
	var ratios []float64
	for i := range min(len(o.Turns), len(plain.Turns)) {
		ratios = append(ratios, o.Turns[i].PerSecond()/plain.Turns[i].PerSecond())
	}
	if len(ratios) == 0 {
		return
	}
	var bar *report.Bar
	if o.Queue.Name == KubeQueue && options.Rate == 0 {
		bar = report.AtLeast(burstAmple)
		if options.Room > 0 {
			bar = report.AtLeast(burstWaiting)
		}
	}
	spread(r.Section(o.Queue.Name+" compared with "+None), "completions/s, as a part", "", ratios, bar)
}
