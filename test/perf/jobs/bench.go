package jobs

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"sync/atomic"
	"time"

	"kube-queue.dev/kube-queue/test/perf/pace"
	"kube-queue.dev/kube-queue/test/perf/rig"
	"kube-queue.dev/kube-queue/test/perf/wire"
)

// Namespace is the namespace of the jobs.
const Namespace = "perf-jobs"

// AuditObjects are the resources whose objects the rig's audit log must contain.
var AuditObjects = []string{"jobs.batch", "pods"}

// Options are the options of a measurement.
type Options struct {
	// Jobs is the number of jobs in each turn.
	Jobs int
	// Rate is how many jobs are created per second. 0 means as fast as possible.
	Rate float64
	// Room is how many jobs the quota of kube-queue lets run at the same time. 0 means all.
	Room    int
	RunTime time.Duration
	// Apply are files of manifests, and With commands to run during a turn, for a queue that
	// selects its jobs by a label.
	Apply, With []string
	// WithoutPolicies runs kube-queue without its admission policies, to measure their cost. Jobs
	// with a suspend field do not need them.
	WithoutPolicies bool
	// Profile profiles a turn with this name and programs of kube-queue, if profiles are wanted. The channel
	// receives the result.
	Profile func(ctx context.Context, turn string, programs ...*rig.Program) <-chan error
}

// Bench runs turns on one rig, one after another.
type Bench struct {
	rig     *rig.Rig
	options Options
	client  *wire.Client
	log     *rig.Log
	say     func(format string, args ...any)
	turns   int
	// used reports whether objects of an earlier turn may exist.
	used bool
	// installed reports whether kube-queue's policies are in the cluster.
	installed bool
}

// New creates the namespace, the quota and the other objects needed by all turns.
func New(ctx context.Context, r *rig.Rig, options Options, say func(format string, args ...any)) (*Bench, error) {
	client, err := wire.New(r.Cluster.Config(), rig.Tool)
	if err != nil {
		return nil, err
	}
	b := &Bench{rig: r, options: options, client: client, log: r.Log(), say: say, installed: true}
	manifests := "apiVersion: v1\nkind: Namespace\nmetadata: {name: " + Namespace + "}\n---" + tree(options.Room)
	if _, err := r.Cluster.KubectlWith(ctx, manifests, "apply", "--server-side", "-f", "-"); err != nil {
		return nil, err
	}
	for _, file := range options.Apply {
		if _, err := r.Cluster.Kubectl(ctx, "apply", "--server-side", "-f", file); err != nil {
			return nil, fmt.Errorf("--apply %s: %w", file, err)
		}
	}
	return b, nil
}

// warmUp is the number of jobs in each turn before those that count, so that start-up costs are not
// measured.
const warmUp = 20

// Turn runs jobs in the queue and adds the measurements to the outcome.
func (b *Bench) Turn(ctx context.Context, outcome *Outcome) (err error) {
	if b.used {
		b.say("deleting what the turn before has left")
		if err := b.clear(ctx); err != nil {
			return err
		}
	}
	b.turns++
	b.used = true
	queue := outcome.Queue
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	programs, err := b.open(ctx, queue, cancel)
	if err != nil {
		return errors.Join(err, stop(programs))
	}
	turn, err := b.measure(ctx, outcome, programs)
	if err := errors.Join(err, stop(programs)); err != nil {
		return err
	}
	outcome.Turns = append(outcome.Turns, turn)
	diary := newDiary(b.prefix(), outcome.Counts)
	if err := b.log.Read(diary.see); err != nil {
		return err
	}
	diary.addDelays(&outcome.Delays)
	b.say("%s: %d jobs in %.1f s, %.1f/s", queue.Name, turn.Jobs, turn.Wall.Seconds(), turn.PerSecond())
	return nil
}

// prefix returns the prefix of the names of this turn's jobs.
func (b *Bench) prefix() string { return fmt.Sprintf("job-%d-", b.turns) }

func names(prefix string, count int) []string {
	all := make([]string, count)
	for i := range all {
		all[i] = fmt.Sprintf("%s%06d", prefix, i+1)
	}
	return all
}

// measure runs the warm-up jobs and the jobs that count.
func (b *Bench) measure(ctx context.Context, outcome *Outcome, programs []*rig.Program) (Turn, error) {
	queue := outcome.Queue
	b.say("%s: %d jobs to warm up", queue.Name, warmUp)
	if _, err := b.send(ctx, queue, names(fmt.Sprintf("warm-%d-", b.turns), warmUp), 0); err != nil {
		return Turn{}, err
	}
	if err := b.quiet(ctx); err != nil {
		return Turn{}, err
	}
	if err := b.log.Skip(); err != nil {
		return Turn{}, err
	}
	before, err := b.rig.Use()
	if err != nil {
		return Turn{}, err
	}
	if queue.Labelled() {
		programs = nil // they serve no profiles
	}
	written := b.options.Profile(ctx, fmt.Sprint("turn-", b.turns), programs...)
	turn, err := b.send(ctx, queue, names(b.prefix(), b.options.Jobs), b.options.Rate)
	if err := errors.Join(err, <-written); err != nil {
		return Turn{}, err
	}
	if err := b.quiet(ctx); err != nil {
		return Turn{}, err
	}
	after, err := b.rig.Use()
	if err != nil {
		return Turn{}, err
	}
	outcome.addUse(after.Since(before))
	return turn, nil
}

const (
	// stalled is the time without a completed job after which a turn fails.
	stalled = time.Minute
	// reportEvery is how often the progress is reported.
	reportEvery = 5 * time.Second
	// inFlight is the number of concurrent creates. It is high enough to saturate the API server.
	inFlight = 32
)

// submit creates jobs, as many in a second as the rate, or as fast as possible if it is 0. It returns
// the time of the first create. A job is created at its time even if earlier creates have no response yet.
func (b *Bench) submit(ctx context.Context, queue Queue, names []string, rate float64, created *atomic.Int64) (first time.Time, err error) {
	bodies := make([][]byte, len(names))
	for i, name := range names {
		if bodies[i], err = queue.job(name, b.options.RunTime); err != nil {
			return first, err
		}
	}
	due := func(index int) time.Duration {
		if rate == 0 {
			return 0
		}
		return time.Duration(float64(index) / rate * float64(time.Second))
	}
	first = time.Now()
	return first, pace.InTime(ctx, first, len(bodies), due, inFlight, func(ctx context.Context, index int) error {
		err := b.client.Do(ctx, wire.Request{Method: http.MethodPost, Path: jobsPath, Body: bodies[index]}, nil)
		if err == nil {
			created.Add(1)
		}
		return err
	})
}

// send creates the jobs and waits until all have completed.
func (b *Bench) send(ctx context.Context, queue Queue, names []string, rate float64) (Turn, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	ends := newEnds(b.client, names)
	watched := make(chan error, 1)
	go func() { watched <- ends.watch(ctx) }()

	var first time.Time
	var created atomic.Int64
	submitted := make(chan error, 1)
	begun := time.Now()
	go func() {
		var err error
		first, err = b.submit(ctx, queue, names, rate, &created)
		submitted <- err
	}()
	ticker := time.NewTicker(reportEvery)
	defer ticker.Stop()
	turn := Turn{Jobs: len(names)}
	for submitted != nil || watched != nil {
		select {
		case err := <-submitted:
			if err != nil {
				return turn, err
			}
			turn.Submitted = time.Since(first)
			submitted = nil
		case err := <-watched:
			if err != nil {
				return turn, err
			}
			watched = nil
		case <-ticker.C:
			left, last, example := ends.state()
			b.say("%s: %d jobs created, %d complete", queue.Name, created.Load(), len(names)-left)
			if quietSince := latest(begun, last); submitted == nil && time.Since(quietSince) > b.options.RunTime+stalled {
				return turn, fmt.Errorf("no job has completed for %v: %d of %d are left, as %s/%s; the logs of %s show why",
					stalled, left, len(names), Namespace, example, queue.Name)
			}
		}
	}
	_, last, _ := ends.state()
	turn.Wall = last.Sub(first)
	return turn, nil
}

func latest(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

const (
	// settled is the time without writes after which a turn is over.
	settled = 1500 * time.Millisecond
	// unsettled is the limit for this wait, because some queues never stop writing.
	unsettled = 30 * time.Second
)

// quiet waits until there are no more writes. Units end, and events are written, after their jobs
// have ended.
func (b *Bench) quiet(ctx context.Context) error {
	begun := time.Now()
	since, size := begun, int64(-1)
	return pace.Until(ctx, 50*time.Millisecond, func(context.Context) (bool, error) {
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
