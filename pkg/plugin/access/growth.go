package access

import (
	"context"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	"kube-queue.dev/kube-queue/pkg/plugin/jobs"
	"kube-queue.dev/kube-queue/pkg/plugin/text"
	"kube-queue.dev/kube-queue/pkg/plugin/units"
)

// waitingGrowth lists the units that wait for the growth of a job, or only those of one pod set if set is not empty.
// It returns nothing if the caller may not list units.
func (c *Cluster) waitingGrowth(ctx context.Context, namespace, kind, name, set string) (string, error) {
	var waits []string
	err := c.Pages(ctx, namespace, metav1.ListOptions{}, func(page *units.Page) bool {
		for i := range page.Items {
			u := &page.Items[i]
			ref := &u.Spec.ConsumerRef
			if !u.Spec.Growth || ref.Kind != kind || ref.Name != name || !u.Phase().Waits() || len(u.Spec.PodSets) != 1 || set != "" && set != u.Spec.PodSets[0].Name {
				continue
			}
			waits = append(waits, fmt.Sprintf("%s %s waits for quota for %s: ask why qu/%s", kind, name, text.Count(int(u.Spec.PodSets[0].Count), "more pod"), u.Metadata.Name))
		}
		return true
	})
	return strings.Join(waits, "; "), visible(err)
}

// whyGated says which unit a pod of a growing job waits for. It returns nothing for other pods.
func (c *Cluster) whyGated(ctx context.Context, pod *unstructured.Unstructured) (string, error) {
	set, owner := pod.GetAnnotations()[wellknown.GrowthAnnotation], metav1.GetControllerOf(pod)
	if gates, _, _ := unstructured.NestedSlice(pod.Object, "spec", "schedulingGates"); set == "" || owner == nil || len(gates) == 0 {
		return "", nil
	}
	if kind, known := jobs.KindOf(owner.APIVersion, owner.Kind); known { // a RayCluster can belong to a RayJob
		t, err := c.findJob(ctx, kind, owner.Name)
		if visible(err) != nil {
			return "", err
		}
		if t != nil {
			if of := metav1.GetControllerOf(t.Job); of != nil {
				if _, known := jobs.KindOf(of.APIVersion, of.Kind); known {
					owner = of
				}
			}
		}
	}
	return c.waitingGrowth(ctx, pod.GetNamespace(), owner.Kind, owner.Name, set)
}
