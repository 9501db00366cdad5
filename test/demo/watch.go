package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/pkg/clientset"
	"kube-queue.dev/kube-queue/pkg/follow"
	"kube-queue.dev/kube-queue/test/clustertest"
)

// watch watches the units of all namespaces.
type watch struct {
	kube  kubernetes.Interface
	queue *clientset.Clientset
	units cache.Store
	// changes has a value for each unit whose state has changed.
	changes chan struct{}
}

// newWatch watches until ctx is done.
func newWatch(ctx context.Context, cluster *clustertest.Cluster) (*watch, error) {
	kube, err := kubernetes.NewForConfig(cluster.Config())
	if err != nil {
		return nil, err
	}
	queue, err := clientset.NewForConfig(cluster.Config())
	if err != nil {
		return nil, err
	}
	informer := cache.NewSharedInformer(cache.NewListWatchFromClient(queue.SchedulingV1alpha1().RESTClient(), "queueunits",
		metav1.NamespaceAll, fields.Everything()), &v1alpha1.QueueUnit{}, 0)
	w := &watch{kube, queue, informer.GetStore(), make(chan struct{})}
	send := func(*v1alpha1.QueueUnit) {
		select {
		case w.changes <- struct{}{}:
		case <-ctx.Done():
		}
	}
	same := func(before, now *v1alpha1.QueueUnit) bool { return unitOf(before) == unitOf(now) }
	if _, err := informer.AddEventHandler(follow.Changes(same, send, func(*v1alpha1.QueueUnit) {})); err != nil {
		return nil, err
	}
	go informer.RunWithContext(ctx)
	return w, nil
}

type jobName struct{ namespace, name string }

func (j jobName) String() string { return j.namespace + "/" + j.name }

// unit is a job, as its unit shows it.
type unit struct {
	job             jobName
	kind            string
	gpus            int64
	phase           v1alpha1.QueueUnitPhase
	reason, message string
}

func unitOf(object any) unit {
	u := object.(*v1alpha1.QueueUnit)
	gpus := u.Spec.Resource[gpu]
	return unit{
		job: jobName{u.Namespace, u.Spec.ConsumerRef.Name}, kind: u.Spec.ConsumerRef.Kind, gpus: gpus.Value(),
		phase:  cmp.Or(u.Status.Phase, v1alpha1.PhaseEnqueued),
		reason: string(u.Status.Reason), message: u.Status.Message,
	}
}

func (w *watch) rows() []unit {
	var rows []unit
	for _, item := range w.units.List() {
		rows = append(rows, unitOf(item))
	}
	return rows
}

// state is what is expected of a job and its unit.
type state struct {
	job    jobName
	phase  v1alpha1.QueueUnitPhase
	reason string
}

// waitFor waits until all states are reached at the same time. A job must not fail.
func (w *watch) waitFor(ctx context.Context, states []state) error {
	for {
		rows := w.rows()
		missing := missingStates(rows, states)
		if len(missing) == 0 {
			return nil
		}
		if i := slices.IndexFunc(rows, func(u unit) bool { return u.phase == v1alpha1.PhaseFailed }); i >= 0 {
			return fmt.Errorf("%s %s failed; run kubectl describe for the cause", rows[i].kind, rows[i].job)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting for %s: %w", strings.Join(missing, ", "), context.Cause(ctx))
		case <-w.changes:
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
