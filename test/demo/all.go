package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	samples "kube-queue.dev/kube-queue/test/acceptance/kinds"
	"kube-queue.dev/kube-queue/test/audit"
	"kube-queue.dev/kube-queue/test/clustertest"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
)

const (
	// deadline limits the demo of all kinds once the cluster is up. The jobs take less than a minute.
	deadline = 5 * time.Minute
	// podRunTime is the run time of the simulated pods. It overrides their commands, which sleep
	// longer in the manifests than is useful for a demo. An endless job is shown running as long.
	podRunTime = 4 * time.Second
	// allQuota is the quota of all kinds.
	allQuota = "test/demo/manifests/quota.yaml"
)

// shownKinds are the kinds of the demo. MPIJob v1 is not shown: it and v2beta1 are versions of the
// same CRD, and a cluster can have only one of them.
func shownKinds() ([]samples.Sample, error) {
	all, err := samples.All()
	return slices.DeleteFunc(all, func(s samples.Sample) bool { return s.Name == "mpiv1" }), err
}

// showAll runs one job of each kind in one quota, until all have ended.
func showAll(ctx context.Context, e *environment) error {
	kinds, err := shownKinds()
	if err != nil {
		return err
	}
	operators, err := clustertest.Operators(ctx)
	if err != nil {
		return fmt.Errorf("listing the operators of all kinds: %w", err)
	}
	if err := e.build(ctx, componentsOf(operators)); err != nil {
		return err
	}
	say("Starting a control plane with simulated nodes and the operators of all kinds of job")
	fmt.Println("MPIJob: mpi-operator (v2beta1) runs, and training-operator runs without its MPIJob (v1). " +
		"Both are versions of the same CRD, and a cluster can have only one of them.")
	if err := e.up(ctx, "--operators", strings.Join(clustertest.Names(operators), ","), "--pod-run-time", podRunTime.String()); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, deadline, errors.New("the demo took longer than "+deadline.String()))
	defer cancel()
	extensions, manifests := files(kinds)
	if err := e.install(ctx, strings.Join(extensions, ",")); err != nil {
		return err
	}
	watch, err := newWatch(ctx, e.cluster)
	if err != nil {
		return err
	}
	say("Applying a quota of 5 cpu and 10Gi of memory, and one job of each kind that requests 1 to 2.5 cpu")
	if err := e.show(ctx, "apply", "-f", allQuota, "-f", "test/demo/manifests/spark.yaml"); err != nil {
		return err
	}
	apply := []string{"apply"}
	for _, manifest := range manifests {
		apply = append(apply, "-f", manifest)
	}
	if err := e.show(ctx, apply...); err != nil {
		return err
	}
	shown := newShow(kinds)
	if err := shown.follow(ctx, watch, e); err != nil {
		return err
	}
	say("Checking the audit log of the API server")
	log, err := e.audit(ctx, os.Stdout)
	if err != nil {
		return err
	}
	say("Requests, waiting time, run time and API writes of each job")
	if err := shown.printCosts(os.Stdout, log); err != nil {
		return err
	}
	e.farewell(kinds)
	return nil
}

// files returns the names of the kinds for --enabled-extensions, and their examples.
func files(kinds []samples.Sample) (extensions, manifests []string) {
	for _, k := range kinds {
		extensions, manifests = append(extensions, k.Name), append(manifests, path.Join("examples", samples.File(k.Kind)))
	}
	return extensions, manifests
}

// farewell prints the next steps.
func (e *environment) farewell(kinds []samples.Sample) {
	var ending []string
	for _, k := range kinds {
		if !k.Endless {
			ending = append(ending, strings.ToLower(k.Kind.Kind))
		}
	}
	fmt.Printf(`
== Done: jobs of %d kinds shared one quota, and no job had a pod before its release.

The cluster is still running. To inspect it:
  export KUBECONFIG=%s
  %[3]s get %[4]s,qu
  %[3]s get queue -A
  %[3]s describe rayjob ray-resources
To run the demo again: make demo-all
To stop the cluster:   make demo-down
`, len(kinds), e.shown(e.cluster.Kubeconfig), e.shown(e.kubectl()), strings.Join(slices.Sorted(slices.Values(ending)), ","))
}

// entry is a job of the show, and what was seen of it.
type entry struct {
	jobName
	kind string
	// endless jobs run until they are deleted.
	endless, deleted bool
	// last is the unit when it was last seen, and there whether it exists.
	last  unit
	there bool
	// waited reports whether the unit has waited for quota.
	waited bool
}

func (j *entry) String() string { return j.kind + " " + j.name }

// argument identifies the job for kubectl.
func (j *entry) argument() string { return strings.ToLower(j.kind) + "/" + j.name }

func (j *entry) ended() bool {
	if j.endless {
		return j.deleted && !j.there
	}
	return j.last.phase == v1alpha1.PhaseSucceeded
}

// show is the demo of one job of each kind.
type show []*entry

func newShow(kinds []samples.Sample) show {
	var s show
	for _, k := range kinds {
		s = append(s, &entry{jobName: jobName{"default", k.Job().GetName()}, kind: k.Kind.Kind, endless: k.Endless})
	}
	return s
}

// follow shows each change of the units until all jobs have ended, and deletes the endless jobs.
func (s show) follow(ctx context.Context, watch *watch, e *environment) error {
	fmt.Printf("\n%8s %-16s %-18s %-10s %s\n", "TIME", "KIND", "JOB", "UNIT", "REASON")
	start, ranLongEnough := time.Now(), make(chan *entry, len(s))
	for {
		begun, err := s.see(os.Stdout, time.Since(start), watch.rows())
		if err != nil {
			return err
		}
		for _, j := range begun {
			time.AfterFunc(podRunTime, func() { ranLongEnough <- j })
		}
		if !slices.ContainsFunc(s, func(j *entry) bool { return !j.ended() }) {
			return s.someWaited()
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting for %s to end: %w", s.missing(), context.Cause(ctx))
		case <-watch.changed:
		case j := <-ranLongEnough:
			j.deleted = true
			if err := e.show(ctx, "delete", "--wait=false", j.argument()); err != nil {
				return err
			}
		}
	}
}

// see prints the changes of the units. It returns the endless jobs that have begun to run.
func (s show) see(out io.Writer, after time.Duration, rows []unit) (begun []*entry, err error) {
	for _, j := range s {
		i := slices.IndexFunc(rows, func(u unit) bool { return u.kind == j.kind && u.job == j.jobName })
		before, was := j.last, j.there
		if j.there = i >= 0; j.there {
			j.last = rows[i]
		}
		if j.there == was && j.last == before {
			continue
		}
		state, why := string(j.last.phase), j.last.reason
		if !j.there {
			state, why = "deleted", ""
		} else if j.last.message != "" {
			why += ": " + j.last.message
		}
		fmt.Fprintf(out, "%7.1fs %s\n", after.Seconds(), strings.TrimRight(fmt.Sprintf("%-16s %-18s %-10s %s", j.kind, j.name, state, why), " "))
		j.waited = j.waited || j.last.phase == v1alpha1.PhaseEnqueued && j.last.reason == string(wellknown.ReasonQuotaExceeded)
		switch {
		case j.last.phase == v1alpha1.PhaseFailed && !j.deleted:
			return nil, fmt.Errorf("%s failed; run kubectl describe %s for the cause", j, j.argument())
		case !j.there && !j.ended():
			return nil, fmt.Errorf("%s was deleted before its end", j)
		case j.endless && j.there && j.last.phase == v1alpha1.PhaseRunning && before.phase != v1alpha1.PhaseRunning:
			begun = append(begun, j)
		}
	}
	return begun, nil
}

func (s show) missing() string {
	var missing []string
	for _, j := range s {
		if !j.ended() {
			missing = append(missing, j.String())
		}
	}
	return strings.Join(missing, ", ")
}

// someWaited checks that the quota had room for some jobs, and not for all.
func (s show) someWaited() error {
	waited := 0
	for _, j := range s {
		if j.waited {
			waited++
		}
	}
	if waited == 0 || waited == len(s) {
		return fmt.Errorf("%d of %d jobs waited for quota", waited, len(s))
	}
	return nil
}

// printCosts prints for each job its requests, how long it waited and ran, and the number of
// writes of the two programs for it. Each job had its pods after one release.
func (s show) printCosts(out io.Writer, log *audit.Log) error {
	writes, err := log.Writes(audit.Options{})
	if err != nil {
		return err
	}
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "KIND\tJOB\tCPU\tMEMORY\tWAITED\tRAN\tWRITES")
	for _, j := range s {
		life, err := log.Life(audit.Options{}, j.kind, j.namespace, j.name)
		if err != nil {
			return err
		}
		cost := slices.IndexFunc(writes.Jobs, func(w audit.JobWrites) bool { return w.UID == life.UID })
		if len(life.Released) != 1 || life.FirstPod.IsZero() || cost < 0 {
			return fmt.Errorf("%s was released %d times, had a pod: %t, has writes: %t", j, len(life.Released), !life.FirstPod.IsZero(), cost >= 0)
		}
		end := life.Ended
		if j.endless {
			end = life.Deleted
		}
		released := life.Released[0].Time
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%.1fs\t%.1fs\t%d\n", j.kind, j.name, j.last.cpu, j.last.memory,
			released.Sub(life.Created.Time).Seconds(), end.Time.Sub(released).Seconds(), writes.Jobs[cost].Total())
	}
	return table.Flush()
}
