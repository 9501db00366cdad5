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

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	samples "kube-queue.dev/kube-queue/test/acceptance/kinds"
	"kube-queue.dev/kube-queue/test/audit"
	"kube-queue.dev/kube-queue/test/clustertest"
)

const (
	// deadline limits the demo of all kinds once the cluster is up. The jobs take less than a minute.
	deadline = 5 * time.Minute
	// podRunTime is the run time of the simulated pods. It overrides their commands, which sleep
	// longer in the manifests than is useful for a demo.
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

func manifestOf(k samples.Sample) string { return path.Join("examples", samples.File(k.Kind)) }

func jobOf(k samples.Sample) jobName { return jobName{"default", k.Job().GetName()} }

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
	say("Starting a control plane with simulated nodes and the operators of all kinds of job")
	fmt.Println("MPIJob: mpi-operator (v2beta1) runs, and training-operator runs without its MPIJob (v1). " +
		"Both are versions of the same CRD, and a cluster can have only one of them.")
	if err := e.up(ctx, "--operators", strings.Join(clustertest.Names(operators), ","), "--pod-run-time", podRunTime.String()); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, deadline, errors.New("the demo took longer than "+deadline.String()))
	defer cancel()
	var enabled []string
	apply := []string{"apply"}
	for _, k := range kinds {
		enabled, apply = append(enabled, k.Name), append(apply, "-f", manifestOf(k))
	}
	if err := e.install(ctx, strings.Join(enabled, ",")); err != nil {
		return err
	}
	w, err := newWatch(ctx, e.cluster)
	if err != nil {
		return err
	}
	say("Applying a quota of 5 cpu and 10Gi of memory, and one job of each kind that requests 1 to 2.5 cpu")
	if err := e.show(ctx, "apply", "-f", allQuota, "-f", "test/demo/manifests/spark.yaml"); err != nil {
		return err
	}
	if err := e.show(ctx, apply...); err != nil {
		return err
	}
	if err := follow(ctx, w, e, kinds); err != nil {
		return err
	}
	say("Checking the audit log of the API server")
	log, err := e.audit(ctx, os.Stdout)
	if err != nil {
		return err
	}
	say("Requests, waiting time, run time and API writes of each job")
	if err := printCosts(os.Stdout, log, kinds); err != nil {
		return err
	}
	fmt.Printf(`
== Done: jobs of %d kinds shared one quota, and no job had a pod before its release.

The cluster is still running. To inspect it:
  export KUBECONFIG=%s
  %[3]s get queueunits
  %[3]s get queue -A
  %[3]s describe rayjob ray-resources
To run the demo again: make demo-all
To stop the cluster:   make demo-down
`, len(kinds), e.shown(e.cluster.Kubeconfig), e.shown(e.kubectl()))
	return nil
}

// follow shows each change of the units. It deletes endless jobs when they run, and returns when the others have ended.
func follow(ctx context.Context, w *watch, e *environment, kinds []samples.Sample) error {
	var begun, ended []state
	var endless []string
	for _, k := range kinds {
		if k.Endless {
			begun, endless = append(begun, state{job: jobOf(k), phase: v1alpha1.PhaseRunning}), append(endless, strings.ToLower(k.Kind.Kind)+"/"+jobOf(k).name)
		} else {
			ended = append(ended, state{job: jobOf(k), phase: v1alpha1.PhaseSucceeded})
		}
	}
	fmt.Printf("\n%8s %-16s %-18s %-10s %s\n", "TIME", "KIND", "JOB", "UNIT", "REASON")
	start, waited := time.Now(), map[jobName]bool{}
	show := func(u unit) {
		if u.reason == string(wellknown.ReasonQuotaExceeded) {
			waited[u.job] = true
		}
		printChange(os.Stdout, time.Since(start), u)
	}
	if err := w.waitFor(ctx, begun, show); err != nil {
		return err
	}
	for _, job := range endless {
		if err := e.show(ctx, "delete", job); err != nil {
			return err
		}
	}
	if err := w.waitFor(ctx, ended, show); err != nil {
		return err
	}
	if len(waited) == 0 || len(waited) == len(kinds) {
		return fmt.Errorf("%d of %d jobs waited for quota", len(waited), len(kinds))
	}
	return nil
}

func printChange(out io.Writer, after time.Duration, u unit) {
	why := u.reason
	if u.message != "" {
		why += ": " + u.message
	}
	fmt.Fprintf(out, "%7.1fs %s\n", after.Seconds(), strings.TrimRight(fmt.Sprintf("%-16s %-18s %-10s %s", u.kind, u.job.name, u.phase, why), " "))
}

// printCosts prints for each job its requests, how long it waited and ran, and the number of
// writes of the two programs for it. Each job had its pods after one release.
func printCosts(out io.Writer, log *audit.Log, kinds []samples.Sample) error {
	writes := log.Writes()
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "KIND\tJOB\tCPU\tMEMORY\tWAITED\tRAN\tWRITES")
	for _, k := range kinds {
		job := jobOf(k)
		life, err := log.Life(k.Kind.Kind, job.namespace, job.name)
		if err != nil {
			return err
		}
		cost := slices.IndexFunc(writes.Jobs, func(w audit.JobWrites) bool { return w.UID == life.UID })
		if len(life.Released) != 1 || life.FirstPod.IsZero() || cost < 0 {
			return fmt.Errorf("%s was released %d times, had a pod: %t, has writes: %t", life, len(life.Released), !life.FirstPod.IsZero(), cost >= 0)
		}
		end := life.Ended
		if k.Endless {
			end = life.Deleted
		}
		released := life.Released[0].Time
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%.1fs\t%.1fs\t%d\n", k.Kind.Kind, job.name, k.Total.Cpu(), k.Total.Memory(),
			released.Sub(life.Created.Time).Seconds(), end.Time.Sub(released).Seconds(), writes.Jobs[cost].Total())
	}
	return table.Flush()
}
