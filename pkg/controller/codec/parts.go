package codec

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/pkg/resources"
)

// Parts returns which pod sets request an amount of a resource, or of a key of a ResourceQuota, as the end of a
// message. Operators add pods, so the owner of a job may not know all sets. It is empty if one pod requests the amount,
// or if the sets do not add up to it: a ResourceQuota may count only some of them, or claims too.
func Parts(spec *v1alpha1.QueueUnitSpec, name string, amount int64) string {
	var parts []string
	var sum resource.Quantity
	pods := int64(0)
	for i := range spec.PodSets {
		set := &spec.PodSets[i]
		count := int64(ptr.Deref(set.MinCount, set.Count))
		each := ofPod(set, name)
		if count == 0 || each.IsZero() {
			continue
		}
		part := fmt.Sprintf("%s 1 pod with %s", set.Name, resources.FormatQuantity(name, each))
		if count > 1 {
			part = fmt.Sprintf("%s %d pods with %s each", set.Name, count, resources.FormatQuantity(name, each))
		}
		parts = append(parts, part)
		each = resources.Quantity(name, resources.UsedValue(name, each)) // each pod is charged whole base units
		each.Mul(count)
		sum.Add(each)
		pods += count
	}
	if total, err := resources.RequestValue(name, sum); err != nil || total != amount || pods < 2 {
		return ""
	}
	return fmt.Sprintf("; %s by pod set: %s", name, strings.Join(parts, ", "))
}

// ofPod returns a copy of what each pod of the set requests.
func ofPod(set *v1alpha1.PodSet, name string) resource.Quantity {
	q := set.Requests[corev1.ResourceName(strings.TrimPrefix(name, corev1.DefaultResourceRequestsPrefix))]
	if limited, isLimit := strings.CutPrefix(name, "limits."); isLimit {
		q = set.Limits[corev1.ResourceName(limited)]
	}
	return q.DeepCopy()
}
