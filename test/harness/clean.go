package harness

import (
	"context"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
)

// Clean removes the objects of the test, whether the programs run or not.
func (l *Env) Clean(ctx context.Context) {
	l.t.Helper()
	l.clearJobs(ctx)
	l.clearQuotas(ctx)
	Must(l.t, l.Dynamic.Resource(Trees).Namespace("kube-system").DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{}))
	l.waitForNothing(ctx)
}

func (l *Env) clearJobs(ctx context.Context) {
	l.t.Helper()
	background := metav1.DeletePropagationBackground
	for _, resource := range allJobs() {
		// A busy API server ends a request after a minute, before hundreds of jobs are deleted.
		var failure error
		err := wait.PollUntilContextCancel(ctx, time.Second, true, func(ctx context.Context) (bool, error) {
			failure = ignoreNotFound(l.Dynamic.Resource(resource).Namespace(l.Namespace). // some kinds are not served
													DeleteCollection(ctx, metav1.DeleteOptions{PropagationPolicy: &background}, metav1.ListOptions{}))
			return failure == nil, nil
		})
		if err != nil {
			l.t.Fatalf("deleting %s: %v", resource, failure)
		}
	}
}

// clearQuotas removes ResourceQuotas and LimitRanges.
func (l *Env) clearQuotas(ctx context.Context) {
	l.t.Helper()
	Must(l.t, l.Kube.CoreV1().ResourceQuotas(l.Namespace).DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{}))
	Must(l.t, l.Kube.CoreV1().LimitRanges(l.Namespace).DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{}))
}

// waitForNothing waits until no unit and no pod is left. It deletes those without an owner.
func (l *Env) waitForNothing(ctx context.Context) {
	l.t.Helper()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		units, err := l.Queue.SchedulingV1alpha1().QueueUnits(l.Namespace).List(ctx, metav1.ListOptions{})
		Must(l.t, err)
		pods, err := l.Kube.CoreV1().Pods(l.Namespace).List(ctx, metav1.ListOptions{})
		Must(l.t, err)
		if len(units.Items)+len(pods.Items) == 0 {
			return
		}
		for _, unit := range units.Items {
			if len(unit.OwnerReferences) == 0 { // created by hand, or orphaned
				err := l.Queue.SchedulingV1alpha1().QueueUnits(l.Namespace).Delete(ctx, unit.Name, metav1.DeleteOptions{})
				if !apierrors.IsForbidden(err) { // it still holds quota for its job
					Must(l.t, ignoreNotFound(err))
				}
			}
		}
		for _, pod := range pods.Items {
			if len(pod.OwnerReferences) == 0 && pod.DeletionTimestamp == nil {
				Must(l.t, ignoreNotFound(l.Kube.CoreV1().Pods(l.Namespace).Delete(ctx, pod.Name, metav1.DeleteOptions{})))
			}
		}
		select {
		case <-ctx.Done():
			l.t.Fatalf("%d units and %d pods are left after the test", len(units.Items), len(pods.Items))
		case <-tick.C:
		}
	}
}

// ClearOrphans deletes the objects that remain after a job was deleted with propagation policy
// Orphan.
func (l *Env) ClearOrphans(job string) {
	l.t.Helper()
	ctx := l.t.Context()
	background := metav1.DeletePropagationBackground
	for _, resource := range append(allJobs(), Pods) {
		orphans := l.Dynamic.Resource(resource).Namespace(l.Namespace)
		list, err := orphans.List(ctx, metav1.ListOptions{})
		Must(l.t, ignoreNotFound(err))
		if err != nil {
			continue // the kind is not served
		}
		for _, orphan := range list.Items {
			if belongs(orphan.GetName(), job) && metav1.GetControllerOf(&orphan) == nil {
				Must(l.t, ignoreNotFound(orphans.Delete(ctx, orphan.GetName(), metav1.DeleteOptions{PropagationPolicy: &background})))
			}
		}
	}
}

func belongs(name, job string) bool { return name == job || strings.HasPrefix(name, job+"-") }

func ignoreNotFound(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
