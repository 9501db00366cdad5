package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	quotav1beta1 "kube-queue.dev/kube-queue/apis/quota/v1beta1"
	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/pkg/plugin/text"
)

const gpu = "nvidia.com/gpu"

// team is a quota, and what its units use.
type team struct {
	name           string
	min, max, used int64
}

// teams reads the quotas from the tree. The last one is the root.
func teams(root quotav1beta1.ElasticQuotaNode, rows []unit) []team {
	var found []team
	for _, node := range append(slices.Clone(root.Children), root) {
		t := teamOf(node)
		for _, u := range rows {
			if u.phase.HoldsQuota() && (u.job.namespace == t.name || node.Name == root.Name) {
				t.used += u.gpus
			}
		}
		found = append(found, t)
	}
	return found
}

func teamOf(node quotav1beta1.ElasticQuotaNode) team {
	least, most := node.Min[gpu], node.Max[gpu]
	return team{name: node.Name, min: least.Value(), max: most.Value()}
}

// print prints all jobs and quotas.
func (w *watch) print(ctx context.Context, out io.Writer) error {
	trees, err := w.queue.QuotaV1beta1().ElasticQuotaTrees(quotav1beta1.TreeNamespace).List(ctx, metav1.ListOptions{})
	if err != nil || len(trees.Items) != 1 {
		return fmt.Errorf("reading the quota tree: %d exist: %w", len(trees.Items), err)
	}
	rows := w.rows()
	teams := teams(trees.Items[0].Spec.Root, rows)
	printJobs(out, rows, teams)
	printTeams(out, teams)
	return nil
}

// printJobs prints the jobs in the order of the teams.
func printJobs(out io.Writer, rows []unit, teams []team) {
	place := func(u unit) int {
		return slices.IndexFunc(teams, func(t team) bool { return t.name == u.job.namespace })
	}
	slices.SortFunc(rows, func(a, b unit) int {
		return cmp.Or(cmp.Compare(place(a), place(b)), cmp.Compare(a.job.name, b.job.name))
	})
	fmt.Fprintf(out, "  %-9s %-8s %4s  %s\n", "TEAM", "JOB", "GPUS", "STATE")
	for _, u := range rows {
		shown := string(u.phase)
		if u.phase == v1alpha1.PhaseEnqueued {
			shown = "waits: " + u.reason
		}
		fmt.Fprintf(out, "  %-9s %-8s %4d  %s\n", u.job.namespace, u.job.name, u.gpus, shown)
		if u.phase == v1alpha1.PhaseEnqueued && u.message != "" {
			text.Wrap(out, strings.Repeat(" ", 27), u.message, width)
		}
	}
}

func printTeams(out io.Writer, teams []team) {
	fmt.Fprintf(out, "\n  %-9s %4s %4s %4s  GPUS\n", "QUOTA", "MIN", "USED", "MAX")
	for _, t := range teams {
		fmt.Fprintf(out, "  %-9s %4d %4d %4d  %s\n", t.name, t.min, t.used, t.max, bar(t))
	}
}

// bar shows the GPUs of a quota: # are used, + are used and borrowed, . are free.
func bar(t team) string {
	borrowed := int64(0)
	if t.min > 0 {
		borrowed = max(0, t.used-t.min)
	}
	return strings.Repeat("#", int(t.used-borrowed)) + strings.Repeat("+", int(borrowed)) + strings.Repeat(".", int(max(0, t.max-t.used)))
}

// printEvents prints what job-extensions reports on a job.
func (w *watch) printEvents(ctx context.Context, out io.Writer, job jobName) error {
	list, err := w.kube.CoreV1().Events(job.namespace).List(ctx, metav1.ListOptions{
		FieldSelector: "source=job-extensions,involvedObject.kind=Job,involvedObject.name=" + job.name})
	if err != nil {
		return fmt.Errorf("listing the events of %s: %w", job, err)
	}
	fmt.Fprintf(out, "\n  Events on job %s:\n", job)
	slices.SortStableFunc(list.Items, func(a, b corev1.Event) int { return a.LastTimestamp.Compare(b.LastTimestamp.Time) })
	for _, event := range list.Items {
		fmt.Fprintf(out, "  %-7s %s\n", event.Type, event.Reason)
		text.Wrap(out, strings.Repeat(" ", 10), event.Message, width)
	}
	return nil
}

// width is the width of the demo's text.
const width = 96
