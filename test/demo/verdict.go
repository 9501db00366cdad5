package main

import (
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
	"time"

	"kube-queue.dev/kube-queue/test/audit"
)

// livesOf returns the lives of the jobs from the audit log.
func livesOf(log *audit.Log, jobs []job) ([]audit.Life, error) {
	var lives []audit.Life
	for _, j := range jobs {
		life, err := log.Life(audit.Options{}, j.Kind, namespace, j.name)
		if err != nil {
			return nil, err
		}
		lives = append(lives, life)
	}
	return lives, nil
}

// heldFirst checks that each job was held from its creation, was released once before it had
// any pod, and ended.
func heldFirst(lives []audit.Life) error {
	for _, l := range lives {
		kind := kinds[slices.IndexFunc(kinds, func(k *kind) bool { return k.Kind == l.Kind })]
		switch {
		case l.Held.IsZero() || l.Created.Before(l.Held):
			return fmt.Errorf("%v was not held from its creation", l)
		case l.Queued.IsZero():
			return fmt.Errorf("%v never had a QueueUnit", l)
		case len(l.Released) != 1:
			return fmt.Errorf("%v was released %d times", l, len(l.Released))
		case l.FirstPod.IsZero():
			return fmt.Errorf("%v never had a pod", l)
		case !l.Released[0].Before(l.FirstPod):
			return fmt.Errorf("%v had a pod before its release", l)
		case kind.endless && l.Deleted.IsZero():
			return fmt.Errorf("%v was not deleted", l)
		case !kind.endless && l.Outcome != "Succeeded":
			return fmt.Errorf("%v did not succeed: %s", l, l.Outcome)
		}
	}
	return nil
}

// printCosts prints for each job its requests, how long it waited and ran, and the number of
// writes of the two programs for it.
func printCosts(out io.Writer, jobs []job, seen story, lives []audit.Life, writes []audit.JobWrites) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "KIND\tJOB\tCPU\tMEMORY\tWAITED\tRAN\tWRITES")
	for i, j := range jobs {
		cost := slices.IndexFunc(writes, func(w audit.JobWrites) bool { return w.UID == lives[i].UID })
		if cost < 0 {
			return fmt.Errorf("the audit log contains no write for %s", j)
		}
		cpu, memory := seen.requested(j)
		waited, ran := times(lives[i])
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%.1fs\t%.1fs\t%d\n", j.Kind, j.name, cpu, memory, waited.Seconds(), ran.Seconds(), writes[cost].Total())
	}
	return table.Flush()
}

// times returns how long a job that was released once waited and ran.
func times(l audit.Life) (waited, ran time.Duration) {
	end := l.Ended
	if end.IsZero() {
		end = l.Deleted
	}
	return l.Released[0].Time.Sub(l.Created.Time), end.Time.Sub(l.Released[0].Time)
}
