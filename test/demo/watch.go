package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/tools/cache"

	"kube-queue.dev/kube-queue/test/testcluster"
)

var (
	tfjobs     = schema.GroupVersionResource{Group: "kubeflow.org", Version: "v1", Resource: "tfjobs"}
	queueUnits = schema.GroupVersionResource{Group: "scheduling.x-k8s.io", Version: "v1alpha1", Resource: "queueunits"}
)

// row is what is shown of one job.
type row struct {
	job, state, phase, reason, message string
}

// frame is the table at one time.
type frame struct {
	after time.Duration
	rows  []row
}

// watcher follows jobs and their units.
type watcher struct {
	namespace string
	jobs      []string
	factory   dynamicinformer.DynamicSharedInformerFactory
	tfjobs    cache.SharedIndexInformer
	units     cache.SharedIndexInformer
	changed   chan struct{}
}

func newWatcher(cluster *testcluster.Cluster, namespace string, jobs []string) (*watcher, error) {
	client, err := dynamic.NewForConfig(cluster.Config())
	if err != nil {
		return nil, err
	}
	w := &watcher{namespace: namespace, jobs: jobs, changed: make(chan struct{}, 1)}
	w.factory = dynamicinformer.NewFilteredDynamicSharedInformerFactory(client, 0, namespace, nil)
	w.tfjobs = w.factory.ForResource(tfjobs).Informer()
	w.units = w.factory.ForResource(queueUnits).Informer()
	wake := func() {
		select {
		case w.changed <- struct{}{}:
		default:
		}
	}
	for _, informer := range []cache.SharedIndexInformer{w.tfjobs, w.units} {
		_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc:    func(any) { wake() },
			UpdateFunc: func(any, any) { wake() },
			DeleteFunc: func(any) { wake() },
		})
		if err != nil {
			return nil, err
		}
	}
	return w, nil
}

// watch shows the table each time it changes, until all jobs and units have ended.
func (w *watcher) watch(ctx context.Context, out *os.File) (story, error) {
	w.factory.Start(ctx.Done())
	screen := newScreen(out)
	start := time.Now()
	var seen story
	for {
		rows := w.rows()
		if len(seen) == 0 || !slices.Equal(seen[len(seen)-1].rows, rows) {
			f := frame{after: time.Since(start), rows: rows}
			seen = append(seen, f)
			screen.show(f)
		}
		if ended(rows) {
			return seen, nil
		}
		select {
		case <-ctx.Done():
			return seen, fmt.Errorf("waiting for the jobs to end: %w", context.Cause(ctx))
		case <-w.changed:
		}
	}
}

func ended(rows []row) bool {
	for _, r := range rows {
		if r.state != "Succeeded" && r.state != "Failed" || r.phase != "Succeeded" && r.phase != "Failed" {
			return false
		}
	}
	return true
}

func (w *watcher) rows() []row {
	units := map[string]*unstructured.Unstructured{}
	for _, o := range w.units.GetStore().List() {
		unit := o.(*unstructured.Unstructured)
		kind, _, _ := unstructured.NestedString(unit.Object, "spec", "consumerRef", "kind")
		name, _, _ := unstructured.NestedString(unit.Object, "spec", "consumerRef", "name")
		if kind == "TFJob" {
			units[name] = unit
		}
	}
	var rows []row
	for _, name := range w.jobs {
		r := row{job: name, state: "-", phase: "-"}
		if o, ok, _ := w.tfjobs.GetStore().GetByKey(w.namespace + "/" + name); ok {
			r.state = stateOf(o.(*unstructured.Unstructured))
		}
		if unit := units[name]; unit != nil {
			status := func(field string) string {
				value, _, _ := unstructured.NestedString(unit.Object, "status", field)
				return value
			}
			r.phase, r.reason, r.message = status("phase"), status("reason"), status("message")
			if r.phase == "" {
				r.phase = "Enqueued"
			}
		}
		rows = append(rows, r)
	}
	return rows
}

// stateOf is what kubectl shows in the column STATE of a TFJob: the type of the
// last condition.
func stateOf(job *unstructured.Unstructured) string {
	conditions, _, _ := unstructured.NestedSlice(job.Object, "status", "conditions")
	if len(conditions) == 0 {
		return "-"
	}
	last, _ := conditions[len(conditions)-1].(map[string]any)
	kind, _ := last["type"].(string)
	return kind
}

// screen shows frames: on a terminal the table is drawn over the one before, else
// the rows that changed are printed.
type screen struct {
	out      io.Writer
	terminal bool
	before   []row
}

func newScreen(out *os.File) *screen {
	info, err := out.Stat()
	s := &screen{out: out, terminal: err == nil && info.Mode()&os.ModeCharDevice != 0 && os.Getenv("TERM") != "dumb"}
	fmt.Fprintf(out, "\n%-8s %-6s %-11s %-10s %s\n", "TIME", "JOB", "STATE", "UNIT", "REASON")
	return s
}

func (s *screen) show(f frame) {
	if s.terminal && s.before != nil {
		fmt.Fprintf(s.out, "\x1b[%dA", len(s.before))
	}
	for i, r := range f.rows {
		if !s.terminal && s.before != nil && s.before[i] == r {
			continue
		}
		why := r.reason
		if r.message != "" {
			why += ": " + r.message
		}
		line := strings.TrimRight(fmt.Sprintf("%7.1fs %-6s %-11s %-10s %s", f.after.Seconds(), r.job, r.state, r.phase, why), " ")
		if s.terminal {
			line += "\x1b[K"
		}
		fmt.Fprintln(s.out, line)
	}
	s.before = f.rows
}

// story is what was seen.
type story []frame

// check tells whether it is the one that the demo is to show.
func (s story) check() error {
	queuing := false
	for _, f := range s {
		running := 0
		for _, r := range f.rows {
			switch {
			case r.state == "Running":
				running++
			case r.state == "Failed" || r.phase == "Failed":
				return fmt.Errorf("%s failed", r.job)
			case r.job == "job2" && r.state == "Queuing":
				queuing = true
			}
		}
		if running > 1 {
			return fmt.Errorf("after %.1f s both jobs ran, and the quota has room for one", f.after.Seconds())
		}
	}
	if !queuing {
		return fmt.Errorf("job2 was never shown as Queuing")
	}
	return nil
}
