package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/pflag"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"

	quotav1beta1 "kube-queue.dev/kube-queue/apis/quota/v1beta1"
	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	"kube-queue.dev/kube-queue/test/audit/log"
	"kube-queue.dev/kube-queue/test/clustertest"
	"kube-queue.dev/kube-queue/test/perf/rig"
)

const jobsHelp = `
Creates batch Jobs with one small pod on a cluster with kube-controller-manager,
kube-scheduler and simulated nodes, and waits until all of them have completed. Times are
taken from the audit log. --queue selects what releases the jobs:

  kube-queue       jobs are held by annotation and suspend field, and released by
                   kube-queue-controller and job-extensions
  none             jobs are created unsuspended without kube-queue: the baseline
  label:KEY=VALUE  jobs are created suspended with this label in namespace perf-jobs, and
                   released by the command of --with. The programs and policies of
                   kube-queue do not run. Such a queue ignores --room: create its quota
                   with --apply

--queue can be repeated: the queues then follow each other, each on a new cluster.
--compare adds the queue none as the first one.`

// The queues without a label, and the namespace of the jobs.
const (
	noQueue       = "none"
	kubeQueue     = "kube-queue"
	jobsNamespace = "perf-jobs"
)

// jobsScenarios are values of flags.
var jobsScenarios = map[string]map[string]string{
	"ample":   {"jobs": "1500"},
	"waiting": {"jobs": "1500", "room": "200"},
	"steady":  {"jobs": "1200", "rate": "20"},
	"burst":   {"jobs": "10000"},
}

// jobsRun is the command jobs. The jobs of all queues are equal except for the mark by which a queue selects them.
// Each queue gets a new cluster without the programs of other queues and without the admission policies of
// kube-queue, which would slow down its jobs.
type jobsRun struct {
	flags    *pflag.FlagSet
	scenario string
	// jobs is the number of jobs. room is how many may run at the same time in the quota of kube-queue; 0 means all.
	// rate is how many are created per second; 0 means as fast as possible.
	jobs, room int
	rate       float64
	runTime    time.Duration
	queues     []string
	compare    bool
	// For a queue that selects its jobs by a label, apply are manifest files and with are commands to run.
	apply, with []string

	*session
	// queue is the queue being measured. mark has the labels of its jobs, if any.
	queue string
	mark  labels.Set
	// plain is the outcome without a queue, if it was measured.
	plain *outcome
}

func (j *jobsRun) addFlags(flags *pflag.FlagSet) {
	j.flags = flags
	flags.StringVar(&j.scenario, "scenario", "ample", "`NAME` of values of --jobs, --rate and --room: "+strings.Join(slices.Sorted(maps.Keys(jobsScenarios)), ", "))
	flags.IntVar(&j.jobs, "jobs", 0, "`NUMBER` of jobs")
	flags.Float64Var(&j.rate, "rate", 0, "`NUMBER` of jobs created per second; 0: as fast as possible")
	flags.IntVar(&j.room, "room", 0, "`NUMBER` of jobs that may run at a time in the quota of kube-queue; 0: all")
	flags.StringArrayVar(&j.queues, "queue", []string{kubeQueue}, "`QUEUE` that releases the jobs: kube-queue, none or label:KEY=VALUE; can be repeated")
	flags.DurationVar(&j.runTime, "run-time", time.Second, "run time of each pod, a `DURATION`")
	flags.BoolVar(&j.compare, "compare", false, "compare with jobs that are created unsuspended, without a queue")
	flags.StringArrayVar(&j.apply, "apply", nil, "`FILE` with manifests for a queue label:KEY=VALUE; can be repeated")
	flags.StringArrayVar(&j.with, "with", nil, "`COMMAND` to run with a queue label:KEY=VALUE, with sh -c, KUBECONFIG set and kubectl in PATH; can be repeated")
}

func (j *jobsRun) parts() (parts []part, err error) {
	values, known := jobsScenarios[j.scenario]
	if !known {
		return nil, fmt.Errorf("unknown scenario %q; known scenarios: %s", j.scenario, strings.Join(slices.Sorted(maps.Keys(jobsScenarios)), ", "))
	}
	for name, value := range values {
		if flag := j.flags.Lookup(name); !flag.Changed {
			err = errors.Join(err, flag.Value.Set(value))
		}
	}
	if j.jobs < 1 || j.rate < 0 || j.room < 0 || j.runTime <= 0 {
		return nil, errors.New("--jobs and --run-time must be positive, and --rate and --room must not be negative")
	}
	queues := j.queues
	if j.compare {
		queues = append([]string{noQueue}, queues...)
	}
	labelled := false
	for i, queue := range queues {
		mark, err := markOf(queue)
		if err != nil {
			return nil, err
		}
		if slices.Contains(queues[:i], queue) {
			continue
		}
		labelled = labelled || mark != nil
		// The nodes have room for all jobs.
		options := rig.Options{WithoutPolicies: queue != kubeQueue, Options: clustertest.Options{
			AuditObjects: []string{"jobs.batch"}, Nodes: 20, NodeCPU: "256", NodeMemory: "1Ti", PodRunTime: j.runTime}}
		parts = append(parts, part{options, func(ctx context.Context, s *session) error {
			j.session, j.queue, j.mark = s, queue, mark
			return j.run(ctx)
		}})
	}
	switch {
	case labelled && len(j.with) == 0:
		err = errors.New("a queue of label:KEY=VALUE needs a program that releases its jobs: set --with")
	case !labelled && len(j.with)+len(j.apply) > 0:
		err = errors.New("--with and --apply need a queue of label:KEY=VALUE: set --queue")
	}
	return parts, err
}

// markOf returns the labels by which a queue selects its jobs, or nil for kube-queue and none.
func markOf(queue string) (labels.Set, error) {
	if queue == noQueue || queue == kubeQueue {
		return nil, nil
	}
	label, ok := strings.CutPrefix(queue, "label:")
	mark, err := labels.ConvertSelectorToLabelsMap(label)
	if !ok || err != nil || len(mark) == 0 {
		return nil, fmt.Errorf("unknown queue %q; known queues: %s, %s and label:KEY=VALUE", queue, noQueue, kubeQueue)
	}
	return mark, nil
}

// job returns a job with one pod with one small container.
func (j *jobsRun) job(name string) *batchv1.Job {
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: jobsNamespace, Labels: j.mark}}
	if j.queue == kubeQueue {
		job.Annotations = map[string]string{wellknown.SuspendAnnotation: "true"}
	}
	job.Spec.Suspend = new(j.queue != noQueue)
	job.Spec.Template.Spec = corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{
		Name: "main", Image: "none",
		Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
			corev1.ResourceCPU: resource.MustParse("100m"), corev1.ResourceMemory: resource.MustParse("16Mi")}},
	}}}
	return job
}

// warmUp is the number of jobs before the counted ones, to exclude start-up costs.
const warmUp = 20

// run measures a queue, from the first create until no more writes happen.
func (j *jobsRun) run(ctx context.Context) error {
	j.say("%s", j.queue)
	if err := j.begin(ctx); err != nil {
		return err
	}
	ends, err := j.watch(ctx)
	if err != nil {
		return err
	}
	if _, err := j.send(ctx, ends, "warm-", warmUp, 0); err != nil {
		return err
	}
	if err := errors.Join(j.quiet(ctx), j.Writes(ctx, func(*log.Entry) {})); err != nil {
		return err
	}
	o := &outcome{counts: rig.Counts{}, created: map[string]time.Time{}, released: map[string]time.Time{}}
	if o.use, _, err = j.during(ctx, func(ctx context.Context) (err error) {
		if o.wall, err = j.send(ctx, ends, counted, j.jobs, j.rate); err != nil {
			return err
		}
		return j.quiet(ctx)
	}); err != nil {
		return err
	}
	if err := j.Writes(ctx, o.see); err != nil {
		return err
	}
	j.report(o)
	if j.queue == noQueue {
		j.plain = o
	}
	return nil
}

// begin creates what the queue needs, and starts its programs.
func (j *jobsRun) begin(ctx context.Context) (err error) {
	// A limit that is never reached, but makes the controller compute the quota.
	limit := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1000000")}
	if j.room > 0 {
		limit[wellknown.MaxJobsResource] = *resource.NewQuantity(int64(j.room), resource.DecimalSI)
	}
	tree := quotav1beta1.ElasticQuotaNode{Name: "root", Children: []quotav1beta1.ElasticQuotaNode{{Name: "jobs", Namespaces: []string{jobsNamespace}, Max: limit}}}
	if err := errors.Join(j.MakeNamespaces(ctx, jobsNamespace), j.ApplyTree(ctx, tree)); err != nil {
		return err
	}
	if j.queue == kubeQueue {
		_, controller := j.Run(ctx, rig.Controller, nil)
		_, extensions := j.Run(ctx, rig.Extensions, nil, "--enabled-extensions=job")
		return errors.Join(controller, extensions)
	}
	if j.mark == nil {
		return nil
	}
	for _, file := range j.apply {
		if _, err := j.Cluster.Kubectl(ctx, "apply", "--server-side", "-f", file); err != nil {
			return fmt.Errorf("--apply %s: %w", file, err)
		}
	}
	for i, command := range j.with {
		_, started := j.Command(fmt.Sprint("with-", i+1), command)
		err = errors.Join(err, started)
	}
	return err
}

// ends counts the completed jobs.
type ends struct {
	mu   sync.Mutex
	done int
	last time.Time
}

// state returns the number of completed jobs and the time of the last completion.
func (e *ends) state() (done int, last time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.done, e.last
}

// watch watches the jobs with a succeeded pod.
func (j *jobsRun) watch(ctx context.Context) (*ends, error) {
	e := &ends{}
	factory := informers.NewSharedInformerFactoryWithOptions(j.Kube, 0, informers.WithNamespace(jobsNamespace),
		informers.WithTweakListOptions(func(o *metav1.ListOptions) { o.FieldSelector = "status.successful=1" }))
	if _, err := factory.Batch().V1().Jobs().Informer().AddEventHandler(cache.FilteringResourceEventHandler{
		FilterFunc: func(object any) bool {
			job, ok := object.(*batchv1.Job)
			return ok && slices.ContainsFunc(job.Status.Conditions, func(c batchv1.JobCondition) bool {
				return c.Type == batchv1.JobComplete && c.Status == corev1.ConditionTrue
			})
		},
		Handler: cache.ResourceEventHandlerFuncs{AddFunc: func(any) {
			e.mu.Lock()
			defer e.mu.Unlock()
			e.done++
			e.last = time.Now()
		}},
	}); err != nil {
		return nil, err
	}
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	return e, context.Cause(ctx)
}

// stalled is the time without a completed job after which a measurement fails.
const stalled = time.Minute

// send creates jobs at a rate, waits until all have completed, and returns the time from the first create to the last
// completion. It creates a job on time even if earlier creates have no response yet.
func (j *jobsRun) send(ctx context.Context, ends *ends, prefix string, count int, rate float64) (wall time.Duration, err error) {
	before, _ := ends.state()
	first := time.Now()
	last := first
	defer j.every(func() string {
		done, _ := ends.state()
		return fmt.Sprintf("%s: %d of %d jobs have completed", j.queue, done-before, count)
	})()
	err = rig.Beside(ctx, func(ctx context.Context) error {
		return rig.Until(ctx, 20*time.Millisecond, 24*time.Hour, nil, func(context.Context) (bool, error) {
			done, at := ends.state()
			if done > before {
				last = at
			}
			if time.Since(last) > stalled+j.runTime {
				return false, fmt.Errorf("no job of namespace %s has completed for %v: %d of %d have; the logs of %s show why", jobsNamespace, stalled, done-before, count, j.queue)
			}
			return done-before == count, nil
		})
	}, func(ctx context.Context) error {
		return rig.InTime(ctx, first, rig.InFlight, count, rig.Rate(rate), func(ctx context.Context, i int) error {
			_, err := j.Kube.BatchV1().Jobs(jobsNamespace).Create(ctx, j.job(fmt.Sprintf("%s%06d", prefix, i+1)), metav1.CreateOptions{})
			return err
		})
	})
	return last.Sub(first), err
}

const (
	// settled is the time without writes after which a measurement is over.
	settled = 1500 * time.Millisecond
	// unsettled limits this wait, because some queues never stop writing.
	unsettled = 30 * time.Second
)

// quiet waits until there are no more writes. Units end, and events are written, after their jobs
// have ended.
func (j *jobsRun) quiet(ctx context.Context) error {
	begun := time.Now()
	since, size := begun, int64(-1)
	return rig.Until(ctx, 50*time.Millisecond, 2*unsettled, nil, func(context.Context) (bool, error) {
		info, err := os.Stat(j.Cluster.AuditLog)
		if err != nil {
			return false, fmt.Errorf("audit log: %w", err)
		}
		if info.Size() != size {
			since, size = time.Now(), info.Size()
		}
		return time.Since(since) >= settled || time.Since(begun) >= unsettled, nil
	})
}

// counted is the prefix of the names of the jobs that count.
const counted = "job-"

// outcome has the measurements of the jobs of a queue.
type outcome struct {
	// wall is the time from the first create to the end of the last job.
	wall   time.Duration
	use    rig.Use
	counts rig.Counts
	// created has the counted jobs that were created suspended, and released those that were unsuspended. The values
	// are the times of the responses.
	created, released map[string]time.Time
}

// see processes entries of the audit log in any order.
func (o *outcome) see(e *log.Entry) {
	o.counts.Add(e)
	ref := e.ObjectRef
	if ref.Resource != "jobs" || ref.Namespace != jobsNamespace || ref.Subresource != "" || !log.Success(e.Code()) || !strings.HasPrefix(ref.Name, counted) {
		return
	}
	var job struct {
		Kind string
		Spec struct{ Suspend bool }
	}
	if json.Unmarshal(e.ResponseObject, &job) != nil || job.Kind != "Job" {
		return
	}
	switch before := o.released[ref.Name]; {
	case e.Verb == "create":
		if job.Spec.Suspend {
			o.created[ref.Name] = e.StageTimestamp
		}
	case e.Verb != "delete" && !job.Spec.Suspend && (before.IsZero() || e.StageTimestamp.Before(before)):
		o.released[ref.Name] = e.StageTimestamp
	}
}

// releases returns the times from the response to the create of each job to the response to the write that unsuspended it.
func (o *outcome) releases() rig.Durations {
	var all rig.Durations
	for name, created := range o.created {
		if released, ok := o.released[name]; ok {
			all = append(all, released.Sub(created))
		}
	}
	return all
}

// jobsBars are the bars of kube-queue on an otherwise idle machine. They are empty for other queues.
type jobsBars struct {
	// writes is the bar for a job that ran longer than 2 s, as all do if they run at the same time, or that waited.
	writes rig.Bar
	// burst is a fraction of the completions per second without a queue.
	burst rig.Bar
	// half and all are the bars for the p50 and p99 of the delays until the release, in ms.
	half, all rig.Bar
}

func (j *jobsRun) bars() (b jobsBars) {
	if j.queue != kubeQueue {
		return b
	}
	waits := j.room > 0
	b.writes = rig.Bar{AtMost: new(6.0)}
	if waits {
		b.writes = rig.Bar{AtMost: new(8.0)}
	}
	switch {
	case j.rate == 0 && waits:
		b.burst = rig.Bar{AtLeast: new(0.45)}
	case j.rate == 0:
		b.burst = rig.Bar{AtLeast: new(0.55)}
	case !waits:
		b.half, b.all = rig.Bar{AtMost: new(30.0)}, rig.Bar{AtMost: new(120.0)}
	}
	return b
}

// report adds the figures, compared with those without a queue if they exist.
func (j *jobsRun) report(o *outcome) {
	count, bars := float64(j.jobs), j.bars()
	rate := func(o *outcome) float64 { return count / o.wall.Seconds() }
	s := j.figures.Section(j.queue)
	s.Count("jobs", j.jobs)
	s.Add("all complete after", o.wall.Seconds(), "s")
	s.Add("completions", rate(o), "jobs/s")
	if j.plain != nil {
		s.Add("completions, of those without a queue", rate(o)/rate(j.plain), "", bars.burst)
	}
	if releases := o.releases(); len(releases) > 0 {
		j.figures.Section(j.queue+": create to release").Spread(releases, bars.half, bars.all)
	}
	o.counts.Show(j.figures.Section(j.queue+": API writes a job"), count, bars.writes)
	o.use.Show(j.figures, j.queue+": ", count, rig.Bar{})
}
