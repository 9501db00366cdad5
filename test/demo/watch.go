package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/tools/cache"

	"kube-queue.dev/kube-queue/test/clustertest"
)

// namespace is the namespace of all jobs.
const namespace = "default"

var queueUnits = schema.GroupVersionResource{Group: "scheduling.x-k8s.io", Version: "v1alpha1", Resource: "queueunits"}

// deleted is the displayed state of a deleted job.
const deleted = "deleted"

// job is a watched job.
type job struct {
	*kind
	name string
}

func (j job) String() string { return j.Kind + " " + j.name }

// argument returns the argument for kubectl that identifies the job.
func (j job) argument() string { return strings.ToLower(j.Kind) + "/" + j.name }

// row is the displayed state of one job, and its requests.
type row struct {
	job                           job
	state, phase, reason, message string
	// end is Succeeded or Failed, once the job has that status.
	end         string
	cpu, memory string
}

// ended reports whether nothing more will happen to the job.
func (r row) ended() bool {
	if r.state == deleted {
		return r.phase == "-"
	}
	return !r.job.endless && (r.end != "" || r.failed()) && (r.phase == "Succeeded" || r.phase == "Failed")
}

func (r row) failed() bool {
	return r.phase == "Failed" || r.end == "Failed"
}

// frame is the table at one time.
type frame struct {
	after time.Duration
	rows  []row
}

// watcher watches jobs and their units.
type watcher struct {
	jobs    []job
	factory dynamicinformer.DynamicSharedInformerFactory
	// stores of the jobs, by resource.
	stores  map[schema.GroupVersionResource]cache.Store
	units   cache.Store
	changed chan struct{}
	// seen are the jobs that existed at some time.
	seen map[job]bool
}

func newWatcher(cluster *clustertest.Cluster, jobs []job) (*watcher, error) {
	client, err := dynamic.NewForConfig(cluster.Config())
	if err != nil {
		return nil, err
	}
	w := &watcher{
		jobs: jobs, stores: map[schema.GroupVersionResource]cache.Store{},
		changed: make(chan struct{}, 1), seen: map[job]bool{},
	}
	w.factory = dynamicinformer.NewFilteredDynamicSharedInformerFactory(client, 0, namespace, nil)
	for _, j := range jobs {
		if w.stores[j.resource()], err = w.follow(j.resource()); err != nil {
			return nil, err
		}
	}
	w.units, err = w.follow(queueUnits)
	return w, err
}

// follow starts to watch a resource.
func (w *watcher) follow(resource schema.GroupVersionResource) (cache.Store, error) {
	informer := w.factory.ForResource(resource).Informer()
	wake := func() {
		select {
		case w.changed <- struct{}{}:
		default:
		}
	}
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(any) { wake() },
		UpdateFunc: func(any, any) { wake() },
		DeleteFunc: func(any) { wake() },
	})
	return informer.GetStore(), err
}

// watch shows the table whenever it changes, until all jobs and units have ended. The closer
// deletes the endless jobs.
func (w *watcher) watch(ctx context.Context, screen *screen, closer *closer) (story, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer closer.running.Wait()
	defer cancel()
	w.factory.Start(ctx.Done())
	start := time.Now()
	var seen story
	for {
		rows := w.rows()
		if len(seen) == 0 || !slices.Equal(seen[len(seen)-1].rows, rows) {
			f := frame{after: time.Since(start), rows: rows}
			seen = append(seen, f)
			screen.show(f)
			closer.see(ctx, rows)
		}
		if !slices.ContainsFunc(rows, func(r row) bool { return !r.ended() }) {
			return seen, nil
		}
		select {
		case <-ctx.Done():
			return seen, fmt.Errorf("waiting for the jobs to end: %w", context.Cause(ctx))
		case done := <-closer.steps:
			if done.err != nil {
				return seen, done.err
			}
			screen.say(done.text)
		case <-w.changed:
		}
	}
}

func (w *watcher) rows() []row {
	units := map[job]*unstructured.Unstructured{}
	for _, o := range w.units.List() {
		unit := o.(*unstructured.Unstructured)
		consumer := func(field string) string { return at("spec", "consumerRef", field)(unit) }
		if k := kindOf(schema.FromAPIVersionAndKind(consumer("apiVersion"), consumer("kind"))); k != nil {
			units[job{k, consumer("name")}] = unit
		}
	}
	var rows []row
	for _, j := range w.jobs {
		var object *unstructured.Unstructured
		if o, ok, _ := w.stores[j.resource()].GetByKey(namespace + "/" + j.name); ok {
			object = o.(*unstructured.Unstructured)
			w.seen[j] = true
		}
		rows = append(rows, rowOf(j, object, units[j], w.seen[j]))
	}
	return rows
}

// rowOf returns the row of a job and its unit, which are nil if they do not exist. A job that
// existed before is shown as deleted.
func rowOf(j job, object, unit *unstructured.Unstructured, wasThere bool) row {
	r := row{job: j, state: "-", phase: "-"}
	switch {
	case object != nil:
		r.state, r.end = j.look(object)
		r.state = cmp.Or(r.state, "-")
	case wasThere:
		r.state = deleted
	}
	if unit == nil {
		return r
	}
	r.phase = cmp.Or(at("status", "phase")(unit), "Enqueued")
	r.reason, r.message = at("status", "reason")(unit), at("status", "message")(unit)
	r.cpu, r.memory = at("spec", "resource", "cpu")(unit), at("spec", "resource", "memory")(unit)
	return r
}
