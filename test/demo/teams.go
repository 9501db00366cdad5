package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	quotav1beta1 "kube-queue.dev/kube-queue/apis/quota/v1beta1"
	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/pkg/generated/clientset/versioned"
	"kube-queue.dev/kube-queue/pkg/generated/informers/externalversions"
	"kube-queue.dev/kube-queue/test/clustertest"
)

const gpu = "nvidia.com/gpu"

// watch watches the units and quotas of all namespaces.
type watch struct {
	kube         kubernetes.Interface
	units, trees cache.Store
	// changed receives after changes.
	changed chan struct{}
}

// newWatch watches until ctx is done.
func newWatch(ctx context.Context, cluster *clustertest.Cluster) (*watch, error) {
	client, err := versioned.NewForConfig(cluster.Config())
	if err != nil {
		return nil, err
	}
	w := &watch{changed: make(chan struct{}, 1)}
	if w.kube, err = kubernetes.NewForConfig(cluster.Config()); err != nil {
		return nil, err
	}
	factory := externalversions.NewSharedInformerFactory(client, 0)
	units, trees := factory.Scheduling().V1alpha1().QueueUnits().Informer(), factory.Quota().V1beta1().ElasticQuotaTrees().Informer()
	w.units, w.trees = units.GetStore(), trees.GetStore()
	wake := func() {
		select {
		case w.changed <- struct{}{}:
		default:
		}
	}
	for _, informer := range []cache.SharedIndexInformer{units, trees} {
		if _, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc: func(any) { wake() }, UpdateFunc: func(any, any) { wake() }, DeleteFunc: func(any) { wake() },
		}); err != nil {
			return nil, err
		}
	}
	factory.Start(ctx.Done())
	return w, nil
}

// unit is a job, as its unit shows it.
type unit struct {
	job             jobName
	kind            string
	gpus            int64
	cpu, memory     string
	phase           v1alpha1.QueueUnitPhase
	reason, message string
}

func (w *watch) rows() []unit {
	var rows []unit
	for _, item := range w.units.List() {
		u := item.(*v1alpha1.QueueUnit)
		requests := u.Spec.Resource
		gpus := requests[gpu]
		rows = append(rows, unit{
			job: jobName{u.Namespace, u.Spec.ConsumerRef.Name}, kind: u.Spec.ConsumerRef.Kind,
			gpus: gpus.Value(), cpu: requests.Cpu().String(), memory: requests.Memory().String(),
			phase:  cmp.Or(u.Status.Phase, v1alpha1.PhaseEnqueued),
			reason: string(u.Status.Reason), message: u.Status.Message,
		})
	}
	return rows
}

// waitFor waits until all states are reached at the same time.
func (w *watch) waitFor(ctx context.Context, states []state) error {
	for {
		missing := missingStates(w.rows(), states)
		if len(missing) == 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting for %s: %w", strings.Join(missing, ", "), context.Cause(ctx))
		case <-w.changed:
		}
	}
}

// missingStates describes the states that are not reached. A unit without a message has not been
// compared with its quota since its last change.
func missingStates(rows []unit, states []state) []string {
	var missing []string
	for _, want := range states {
		i := slices.IndexFunc(rows, func(u unit) bool { return u.job == want.job })
		switch {
		case i < 0:
			missing = append(missing, fmt.Sprintf("a unit of %s", want.job))
		case rows[i].phase != want.phase, want.reason != "" && rows[i].reason != want.reason,
			want.phase == v1alpha1.PhaseEnqueued && rows[i].message == "":
			missing = append(missing, strings.TrimSpace(fmt.Sprintf("%s to be %s %s, and it is %s %s", want.job, want.phase, want.reason, rows[i].phase, rows[i].reason)))
		}
	}
	return missing
}

// team is a quota, and what its units use.
type team struct {
	name           string
	min, max, used int64
}

// teams reads the quotas from the tree. The last one is the root.
func (w *watch) teams(rows []unit) []team {
	var found []team
	for _, item := range w.trees.List() {
		root := item.(*quotav1beta1.ElasticQuotaTree).Spec.Root
		for _, node := range append(slices.Clone(root.Children), root) {
			found = append(found, teamOf(node))
		}
	}
	for i := range found {
		for _, u := range rows {
			if u.phase.HoldsQuota() && (u.job.namespace == found[i].name || i == len(found)-1) {
				found[i].used += u.gpus
			}
		}
	}
	return found
}

func teamOf(node quotav1beta1.ElasticQuotaNode) team {
	least, most := node.Min[gpu], node.Max[gpu]
	return team{name: node.Name, min: least.Value(), max: most.Value()}
}

// print prints all jobs and quotas.
func (w *watch) print(out io.Writer) {
	rows := w.rows()
	teams := w.teams(rows)
	printJobs(out, rows, teams)
	printTeams(out, teams)
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
		text := string(u.phase)
		if u.phase == v1alpha1.PhaseEnqueued {
			text = "waits: " + u.reason
		}
		fmt.Fprintf(out, "  %-9s %-8s %4d  %s\n", u.job.namespace, u.job.name, u.gpus, text)
		if u.phase == v1alpha1.PhaseEnqueued && u.message != "" {
			fmt.Fprint(out, wrapped(u.message, 27))
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

// printEvents prints what the programs report on a job.
func (w *watch) printEvents(ctx context.Context, out io.Writer, job jobName) error {
	list, err := w.kube.CoreV1().Events(job.namespace).List(ctx, metav1.ListOptions{
		FieldSelector: "involvedObject.kind=Job,involvedObject.name=" + job.name})
	if err != nil {
		return fmt.Errorf("listing the events of %s: %w", job, err)
	}
	fmt.Fprintf(out, "\n  Events on job %s:\n", job)
	slices.SortStableFunc(list.Items, func(a, b corev1.Event) int { return lastSeen(a).Compare(lastSeen(b)) })
	for _, event := range list.Items {
		if event.Source.Component == "job-extensions" || event.ReportingController == "job-extensions" {
			fmt.Fprintf(out, "  %-7s %s\n%s", event.Type, event.Reason, wrapped(event.Message, 10))
		}
	}
	return nil
}

// lastSeen is when an event happened for the last time.
func lastSeen(event corev1.Event) time.Time {
	last := event.EventTime.Time
	if event.LastTimestamp.After(last) {
		last = event.LastTimestamp.Time
	}
	if event.Series != nil && event.Series.LastObservedTime.After(last) {
		last = event.Series.LastObservedTime.Time
	}
	return last
}

// width is the width of the demo's text.
const width = 96

// wrapped breaks a text into lines with an indentation.
func wrapped(text string, indentation int) string {
	var b strings.Builder
	line := strings.Repeat(" ", indentation-1)
	empty := len(line)
	for word := range strings.FieldsSeq(text) {
		if len(line)+1+len(word) > width && len(line) > empty {
			b.WriteString(line + "\n")
			line = line[:empty]
		}
		line += " " + word
	}
	b.WriteString(line + "\n")
	return b.String()
}
