// Package plan draws the steps of a random test: jobs of several kinds, steps that edit, copy, suspend, delete and
// orphan them, steps that kill the programs, and attacks. A seed determines the plan completely.
//
// Invariants. Each job is submitted once, and ends by exactly one of the steps End, Delete and Orphan. Each orphaned
// job is cleared later. Steps only concern jobs that were submitted and have not ended. A killed program is restarted
// before the next kill.
package plan

import (
	"fmt"
	"math/rand/v2"
	"slices"
)

// Kind is a kind of jobs.
type Kind struct {
	Name string
	// Endless: jobs run until they are deleted.
	Endless bool
	// Unstoppable: suspending a job does not end its pods.
	Unstoppable bool
	// Parts: there are objects between the job and its pods.
	Parts bool
	// Gated: the job is its pods, which wait at the gate.
	Gated bool
}

// Op is what a step does.
type Op string

// The steps. Those with a job concern this job.
const (
	Submit Op = "submit"
	// Copy submits a job of the kind and size of another one, with that job's annotations at that time.
	Copy Op = "copy"
	// Scale changes the number of workers: in the spec while the job waits, as an autoscaler does after
	// its release.
	Scale Op = "scale"
	// Suspend and Resume change the suspend field by hand.
	Suspend Op = "suspend"
	Resume  Op = "resume"
	// End ends the pods of the job, now or when it has some.
	End    Op = "end"
	Delete Op = "delete"
	// Orphan deletes the job and keeps its pods, and Clear deletes those.
	Orphan Op = "orphan"
	Clear  Op = "clear"

	// Try is an attack on the job.
	Try Op = "attack"

	// Await waits until the status of the tree shows all pods.
	Await Op = "await the status of the tree"

	KillController  Op = "kill kube-queue-controller"
	StartController Op = "start kube-queue-controller"
	KillExtensions  Op = "kill job-extensions"
	StartExtensions Op = "start job-extensions"
)

// Job is a drawn job. Each of its pods requests the same.
type Job struct {
	// Number is 1 for the first job.
	Number int
	Kind   string
	// Place is the index of its namespace.
	Place    int
	MilliCPU int64
	MebiByte int64
	// Workers is its initial number of workers. Most kinds have another pod.
	Workers int
	// Fails reports whether its pods fail when they end.
	Fails bool
	// CopyOf is the number of the original if the job is a copy, or 0.
	CopyOf int
}

// Step is a step. Job is the number of its job, or 0. Workers is the number of workers after it.
type Step struct {
	Op      Op
	Job     int
	Workers int
	Attack  Attack
}

func (s Step) String() string {
	switch {
	case s.Job == 0:
		return string(s.Op)
	case s.Op == Try:
		return fmt.Sprintf("%s job %d: %s", s.Op, s.Job, s.Attack)
	case s.Op == Scale:
		return fmt.Sprintf("%s job %d to %d workers", s.Op, s.Job, s.Workers)
	}
	return fmt.Sprintf("%s job %d", s.Op, s.Job)
}

// Plan is what a test does.
type Plan struct {
	// Jobs are in the order of their numbers, which begin with 1.
	Jobs  []Job
	Steps []Step
}

// Job returns the job with the number.
func (p Plan) Job(number int) Job { return p.Jobs[number-1] }

const (
	// MaxWorkers, MaxMilliCPU and MaxMebiByte limit each job and each of its pods.
	MaxWorkers  = 4
	MaxMilliCPU = 2000
	MaxMebiByte = 1024
	// window is how many jobs exist at the same time.
	window = 14
	// jobsPerKill is the number of jobs between two kills.
	jobsPerKill = 8
	// longestDown is the maximum number of steps while a program is down.
	longestDown = 4
)

// New draws a plan with this number of jobs of the kinds, in this number of namespaces, and this number of attacks.
func New(seed uint64, jobs, places int, kinds []Kind, attacks int) Plan {
	d := &drawing{chance: rand.New(rand.NewPCG(seed, 0)), most: jobs, places: places, kinds: kinds, nextKill: jobsPerKill, attacks: attacks}
	for d.step() {
	}
	return d.plan
}

// drawing is the state after the steps so far.
type drawing struct {
	chance *rand.Rand
	most   int
	places int
	kinds  []Kind
	plan   Plan

	// bag has the kinds to draw next, so that each is drawn equally often. tries does the same for attacks.
	bag   []Kind
	tries []Attack
	// attacks is the number of remaining attacks.
	attacks int
	// living are the jobs that were submitted and have not ended, oldest first.
	living   []*job
	orphaned []int
	// nextKill is the number of submitted jobs after which a program is killed.
	nextKill, kills int
	// restart starts the program that is down, if any. left is the number of steps until then.
	restart Op
	left    int
}

type job struct {
	number    int
	kind      Kind
	workers   int
	suspended bool
}

// option is a possible next step with its weight.
type option struct {
	weight int
	take   func()
}

// step draws the next step. It returns false if none is left.
func (d *drawing) step() bool {
	if d.restart != "" {
		if d.left == 0 {
			d.add(Step{Op: d.restart})
			d.restart = ""
			return true
		}
		d.left--
	}
	options := d.options()
	total := 0
	for _, o := range options {
		total += o.weight
	}
	if total == 0 {
		d.left = 0 // while a program is down, nothing else is left to do
		return d.restart != ""
	}
	at := d.chance.IntN(total)
	for _, o := range options {
		if at < o.weight {
			o.take()
			break
		}
		at -= o.weight
	}
	return true
}

func (d *drawing) add(s Step) { d.plan.Steps = append(d.plan.Steps, s) }

func (d *drawing) options() []option {
	var options []option
	offer := func(weight int, possible bool, take func()) {
		if possible {
			options = append(options, option{weight, take})
		}
	}
	alive, submitted := len(d.living), len(d.plan.Jobs)
	more := submitted < d.most && alive < window
	done := submitted == d.most
	suspended, stoppable := d.those(true), d.those(false)
	targets := d.targets()
	offer(8, more, func() { d.submit(nil) })
	offer(1, more && alive > 0, func() { d.submit(d.any(d.living)) })
	offer(5, alive > 0 && !done, d.scale)
	offer(1, len(stoppable) > 0 && !done, func() { d.suspend(d.any(stoppable), true) })
	offer(2, len(suspended) > 0, func() { d.suspend(d.any(suspended), false) })
	offer(8, len(targets) > 0, func() { d.attack(d.any(targets)) })
	// The oldest jobs end first, because they are admitted first.
	offer(4, alive > window/2 || done && alive > 0 && len(targets) == 0, func() { d.end(d.any(d.living[:(alive+1)/2])) })
	offer(2, len(d.orphaned) > 0, d.clear)
	offer(100, d.restart == "" && submitted >= d.nextKill, d.kill)
	return options
}

// those returns the jobs that are suspended, or that can be.
func (d *drawing) those(suspended bool) (found []*job) {
	for _, j := range d.living {
		if j.suspended == suspended && !j.kind.Unstoppable {
			found = append(found, j)
		}
	}
	return found
}

func (d *drawing) any(of []*job) *job { return of[d.chance.IntN(len(of))] }

// submit submits a new job, or a copy.
func (d *drawing) submit(original *job) {
	drawn, op, kind := Job{}, Submit, Kind{}
	if original != nil {
		op, kind, drawn = Copy, original.kind, d.plan.Job(original.number)
		drawn.Workers, drawn.CopyOf = original.workers, original.number
	} else {
		if len(d.bag) == 0 {
			d.bag = slices.Clone(d.kinds)
		}
		at := d.chance.IntN(len(d.bag))
		kind = d.bag[at]
		d.bag = slices.Delete(d.bag, at, at+1)
		drawn = Job{
			Kind: kind.Name, Place: d.chance.IntN(d.places),
			MilliCPU: 250 * (1 + d.chance.Int64N(MaxMilliCPU/250)), MebiByte: 64 * (1 + d.chance.Int64N(MaxMebiByte/64)),
			Workers: 1 + d.chance.IntN(MaxWorkers-1), Fails: d.chance.IntN(6) == 0,
		}
	}
	drawn.Number = len(d.plan.Jobs) + 1
	d.plan.Jobs = append(d.plan.Jobs, drawn)
	d.living = append(d.living, &job{number: drawn.Number, kind: kind, workers: drawn.Workers})
	d.add(Step{Op: op, Job: drawn.Number})
}

// scale adds a worker, or with a smaller probability removes one.
func (d *drawing) scale() {
	j := d.any(d.living)
	switch more := d.chance.IntN(3) > 0; {
	case j.workers == 1, more && j.workers < MaxWorkers:
		j.workers++
	default:
		j.workers--
	}
	d.add(Step{Op: Scale, Job: j.number, Workers: j.workers})
}

func (d *drawing) suspend(j *job, suspend bool) {
	j.suspended = suspend
	op := Resume
	if suspend {
		op = Suspend
	}
	d.add(Step{Op: op, Job: j.number})
}

// end ends a job in one of three ways.
func (d *drawing) end(j *job) {
	op := []Op{End, End, End, Delete, Orphan}[d.chance.IntN(5)]
	if op == End && j.kind.Endless {
		op = Delete
	}
	if op == End && j.suspended {
		d.suspend(j, false)
	}
	if op == Orphan {
		d.orphaned = append(d.orphaned, j.number)
	}
	d.living = slices.DeleteFunc(d.living, func(other *job) bool { return other == j })
	d.add(Step{Op: op, Job: j.number})
}

func (d *drawing) clear() {
	at := d.chance.IntN(len(d.orphaned))
	d.add(Step{Op: Clear, Job: d.orphaned[at]})
	d.orphaned = slices.Delete(d.orphaned, at, at+1)
}

// kill kills the programs in turn. It first waits for the status, which is not written soon after a start of the
// controller.
func (d *drawing) kill() {
	op := KillController
	d.restart = StartController
	if d.kills%2 == 1 {
		op, d.restart = KillExtensions, StartExtensions
	}
	d.kills++
	d.nextKill += jobsPerKill
	d.left = d.chance.IntN(longestDown + 1)
	d.add(Step{Op: Await})
	d.add(Step{Op: op})
}
