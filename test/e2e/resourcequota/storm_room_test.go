package resourcequota

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	helpers "k8s.io/component-helpers/resource"

	schedulingv1alpha1 "kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/test/harness"
)

// amounts have the amounts of a quota's keys, in thousandths.
type amounts map[corev1.ResourceName]int64

func (a amounts) add(b amounts, times int64) {
	for key, value := range b {
		a[key] += times * value
	}
}

// weigh returns what a pod with these requests and limits uses of a quota's keys.
func weigh(requests, limits corev1.ResourceList) amounts {
	used := amounts{corev1.ResourcePods: 1000, "count/pods": 1000}
	for name, quantity := range requests {
		used["requests."+name] = quantity.MilliValue()
		used[name] = quantity.MilliValue()
	}
	for name, quantity := range limits {
		used["limits."+name] = quantity.MilliValue()
	}
	return used
}

func ofPod(p *corev1.Pod) amounts {
	if ended(p) {
		return amounts{"count/pods": 1000}
	}
	return weigh(helpers.PodRequests(p, helpers.PodResourcesOptions{}), helpers.PodLimits(p, helpers.PodResourcesOptions{}))
}

func ended(p *corev1.Pod) bool {
	return p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
}

// ofUnit returns what all pods of a unit use, and their number.
func ofUnit(unit *schedulingv1alpha1.QueueUnit) (sum amounts, count int) {
	sum = amounts{}
	for _, set := range unit.Spec.PodSets {
		sum.add(weigh(set.Requests, set.Limits), int64(set.Count))
		count += int(set.Count)
	}
	return sum, count
}

// view has the objects of a namespace, from lists made one after another.
type view struct {
	pods   []corev1.Pod
	units  map[string]*schedulingv1alpha1.QueueUnit // by job
	quotas []corev1.ResourceQuota
}

func look(t testing.TB, l *harness.Env) view {
	t.Helper()
	ctx := t.Context()
	pods, err := l.Kube.CoreV1().Pods(l.Namespace).List(ctx, metav1.ListOptions{})
	harness.Must(t, err)
	units, err := l.Queue.SchedulingV1alpha1().QueueUnits(l.Namespace).List(ctx, metav1.ListOptions{})
	harness.Must(t, err)
	quotas, err := l.Kube.CoreV1().ResourceQuotas(l.Namespace).List(ctx, metav1.ListOptions{})
	harness.Must(t, err)
	v := view{pods: pods.Items, quotas: quotas.Items, units: map[string]*schedulingv1alpha1.QueueUnit{}}
	for i := range units.Items {
		v.units[units.Items[i].Spec.ConsumerRef.Name] = &units.Items[i]
	}
	return v
}

// of returns the pods of a job, found by name.
func (v *view) of(job string) (found []*corev1.Pod) {
	for i := range v.pods {
		if name := v.pods[i].Name; name == job || strings.HasPrefix(name, job+"-") {
			found = append(found, &v.pods[i])
		}
	}
	return found
}

func holds(unit *schedulingv1alpha1.QueueUnit) bool {
	return unit.Status.Phase == schedulingv1alpha1.PhaseDequeued || unit.Status.Phase == schedulingv1alpha1.PhaseRunning
}

// held returns the larger of what pods use and what released jobs were admitted for.
func (v *view) held() amounts {
	held, counted := amounts{}, map[string]bool{}
	for job, unit := range v.units {
		if !holds(unit) {
			continue
		}
		promised, _ := ofUnit(unit)
		used := amounts{}
		for _, pod := range v.of(job) {
			used.add(ofPod(pod), 1)
			counted[pod.Name] = true
		}
		for key, value := range used {
			promised[key] = max(promised[key], value)
		}
		held.add(promised, 1)
	}
	for i := range v.pods {
		if !counted[v.pods[i].Name] {
			held.add(ofPod(&v.pods[i]), 1)
		}
	}
	return held
}

// room reports whether more fits in addition to held.
func (v *view) room(asked, held amounts) bool {
	for _, quota := range v.quotas {
		for key, hard := range quota.Spec.Hard {
			if asked[key] > 0 && held[key]+asked[key] > hard.MilliValue() {
				return false
			}
		}
	}
	return true
}

// behind reports whether the quota controller has not counted all pods yet.
func behind(q corev1.ResourceQuota) bool {
	return !equality.Semantic.DeepEqual(q.Spec.Hard, q.Status.Hard) || len(q.Status.Used) < len(q.Spec.Hard)
}

// free reports whether the request fits according to the status of the quotas.
func (v *view) free(asked amounts) bool {
	for _, quota := range v.quotas {
		for key, hard := range quota.Status.Hard {
			used, counted := quota.Status.Used[key]
			if !counted || used.MilliValue()+asked[key] > hard.MilliValue() {
				return false
			}
		}
	}
	return len(v.quotas) > 0
}
