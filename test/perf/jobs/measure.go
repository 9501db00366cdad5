package jobs

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"

	"kube-queue.dev/kube-queue/test/clustertest"
	"kube-queue.dev/kube-queue/test/perf/pace"
	"kube-queue.dev/kube-queue/test/perf/rig"
)

// Namespace is the namespace of the jobs.
const Namespace = "perf-jobs"

// Options are the options of a measurement.
type Options struct {
	Jobs int
	// Rate is how many jobs are created per second. 0 means as fast as possible.
	Rate float64
	// Room is how many jobs the quota of kube-queue lets run at the same time. 0 means all.
	Room    int
	RunTime time.Duration
	// Apply are files of manifests, and With commands to run, for a queue that selects its jobs by a
	// label.
	Apply, With []string
}

// Rig returns the options of the rig for a queue. There is room for all jobs on its nodes.
func (o Options) Rig(queue Queue) rig.Options {
	return rig.Options{WithoutPolicies: queue.Name != KubeQueue, Options: clustertest.Options{
		AuditObjects: []string{"jobs.batch"}, Nodes: 20, NodeCPU: "256", NodeMemory: "1Ti", PodRunTime: o.RunTime}}
}

// bench measures one queue on its rig.
type bench struct {
	Options
	queue Queue
	rig   *rig.Rig
	say   func(format string, args ...any)
}

// warmUp is the number of jobs before those that count, so that start-up costs are not measured.
const warmUp = 20

// Measure runs jobs in the queue. profile starts a profile.
func Measure(ctx context.Context, r *rig.Rig, queue Queue, options Options, say func(format string, args ...any), profile func() <-chan error) (*Outcome, error) {
	b := &bench{options, queue, r, say}
	programs, err := b.begin(ctx)
	if err != nil {
		return nil, err
	}
	if _, err := b.send(ctx, "warm-", warmUp, 0); err != nil {
		return nil, err
	}
	log, err := r.Log()
	if err != nil {
		return nil, err
	}
	before, err := r.Use()
	if err != nil {
		return nil, err
	}
	profiled := profile()
	wall, err := b.send(ctx, "job-", b.Jobs, b.Rate)
	if err := errors.Join(err, <-profiled); err != nil {
		return nil, err
	}
	after, err := r.Use()
	if err != nil {
		return nil, err
	}
	diary := newDiary("job-")
	if err := log.Read(ctx, diary.see); err != nil {
		return nil, err
	}
	for _, program := range programs {
		err = errors.Join(err, program.Stop())
	}
	return &Outcome{queue: queue, options: options, wall: wall, releases: diary.releases(), counts: diary.counts, use: after.Since(before)}, err
}

// begin creates what the queue needs, and starts its programs.
func (b *bench) begin(ctx context.Context) (programs []*rig.Program, err error) {
	if err := errors.Join(b.rig.MakeNamespaces(ctx, Namespace), b.rig.ApplyTree(ctx, tree(b.Room))); err != nil {
		return nil, err
	}
	add := func(program *rig.Program, err2 error) {
		programs, err = append(programs, program), errors.Join(err, err2)
	}
	switch {
	case b.queue.Name == KubeQueue:
		add(b.rig.Run(ctx, rig.Controller, nil))
		add(b.rig.Run(ctx, rig.Extensions, nil, "--enabled-extensions=job"))
	case b.queue.Labelled():
		for _, file := range b.Apply {
			if _, err := b.rig.Cluster.Kubectl(ctx, "apply", "--server-side", "-f", file); err != nil {
				return nil, fmt.Errorf("--apply %s: %w", file, err)
			}
		}
		for i, command := range b.With {
			add(b.rig.Command(fmt.Sprint("with-", i+1), command))
		}
	}
	return programs, err
}

// stalled is the time without a completed job after which a measurement fails.
const stalled = time.Minute

// send creates jobs at a rate, waits until all have completed and no more writes happen, and returns the time from
// the first create to the last completion.
func (b *bench) send(ctx context.Context, prefix string, count int, rate float64) (wall time.Duration, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ends, err := b.watch(ctx, prefix)
	if err != nil {
		return 0, err
	}
	first, said := time.Now(), time.Now()
	created := make(chan error, 1)
	go func() { created <- b.create(ctx, prefix, count, rate) }()
	last := first
	err = pace.Until(ctx, 20*time.Millisecond, 24*time.Hour, nil, func(context.Context) (bool, error) {
		select {
		case err := <-created:
			if err != nil {
				return false, err
			}
		default:
		}
		done, at := ends.state()
		if done > 0 {
			last = at
		}
		if time.Since(last) > stalled+b.RunTime {
			return false, fmt.Errorf("no job of namespace %s has completed for %v: %d of %d have; the logs of %s show why", Namespace, stalled, done, count, b.queue.Name)
		}
		if time.Since(said) > 5*time.Second {
			said = time.Now()
			b.say("%s: %d of %d jobs have completed", b.queue.Name, done, count)
		}
		return done == count, nil
	})
	if err != nil {
		return 0, err
	}
	return last.Sub(first), b.quiet(ctx)
}

// create creates jobs. A job is created at its time even if earlier creates have no response yet.
func (b *bench) create(ctx context.Context, prefix string, count int, rate float64) error {
	return pace.InTime(ctx, time.Now(), rig.InFlight, count, pace.Rate(rate), func(ctx context.Context, i int) error {
		_, err := b.rig.Kube.BatchV1().Jobs(Namespace).Create(ctx, b.queue.job(fmt.Sprintf("%s%06d", prefix, i+1)), metav1.CreateOptions{})
		return err
	})
}

// ends are the completed jobs whose names start with a prefix.
type ends struct {
	prefix string

	mu    sync.Mutex
	names map[string]bool
	last  time.Time
}

// state returns the number of completed jobs and the time of the last completion.
func (e *ends) state() (done int, last time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.names), e.last
}

func (e *ends) see(job *batchv1.Job) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.names[job.Name] || !strings.HasPrefix(job.Name, e.prefix) {
		return
	}
	for _, condition := range job.Status.Conditions {
		if condition.Type == batchv1.JobComplete && condition.Status == corev1.ConditionTrue {
			e.names[job.Name], e.last = true, time.Now()
		}
	}
}

// watch watches the jobs with a succeeded pod.
func (b *bench) watch(ctx context.Context, prefix string) (*ends, error) {
	e := &ends{prefix: prefix, names: map[string]bool{}}
	see := func(job any) { e.see(job.(*batchv1.Job)) }
	factory := informers.NewSharedInformerFactoryWithOptions(b.rig.Kube, 0, informers.WithNamespace(Namespace),
		informers.WithTweakListOptions(func(o *metav1.ListOptions) { o.FieldSelector = "status.successful=1" }))
	if _, err := factory.Batch().V1().Jobs().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: see, UpdateFunc: func(_, now any) { see(now) }}); err != nil {
		return nil, err
	}
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	return e, context.Cause(ctx)
}

const (
	// settled is the time without writes after which a measurement is over.
	settled = 1500 * time.Millisecond
	// unsettled is the limit for this wait, because some queues never stop writing.
	unsettled = 30 * time.Second
)

// quiet waits until there are no more writes. Units end, and events are written, after their jobs
// have ended.
func (b *bench) quiet(ctx context.Context) error {
	begun := time.Now()
	since, size := begun, int64(-1)
	return pace.Until(ctx, 50*time.Millisecond, 2*unsettled, nil, func(context.Context) (bool, error) {
		info, err := os.Stat(b.rig.Cluster.AuditLog)
		if err != nil {
			return false, fmt.Errorf("audit log: %w", err)
		}
		if info.Size() != size {
			since, size = time.Now(), info.Size()
		}
		return time.Since(since) >= settled || time.Since(begun) >= unsettled, nil
	})
}
