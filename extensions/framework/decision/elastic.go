package decision

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	"kube-queue.dev/kube-queue/extensions/framework"
	"kube-queue.dev/kube-queue/pkg/lifecycle"
)

// A job of a kind that is Elastic can start with fewer pods than it requests. The release then lowers the field with
// the number of pods, and records both numbers in annotations of the job. While the field has the number from the
// release, the job still requests the original number, which the next suspension restores. If the field has another
// number, the job's owner or its autoscaler has set it: that number counts, and the recorded numbers do not.

// requested returns the job with the number of pods that it requests. This is the job itself unless it was released
// with fewer pods.
func requested(adapter framework.Adapter, job framework.Object) framework.Object {
	original, admitted, recorded := recordedCounts(adapter.Kind().Elastic, job)
	if !recorded {
		return job
	}
	object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(job)
	if err != nil {
		return job
	}
	path := countPath(adapter.Kind().Elastic, object)
	if now, _ := field(object, path...).(int64); now != admitted {
		return job
	}
	whole := adapter.New()
	err = unstructured.SetNestedField(object, original, path...)
	if err == nil {
		err = runtime.DefaultUnstructuredConverter.FromUnstructured(object, whole)
	}
	if err != nil {
		return job
	}
	return whole
}

// ReleasedWith returns the pod set of a job that was released with fewer pods than it requests, and their number. It is
// empty if there is none, or if the job has another number of pods now.
func ReleasedWith(adapter framework.Adapter, job framework.Object) (podSet string, pods int32) {
	if requested(adapter, job) == job {
		return "", 0
	}
	_, admitted, _ := recordedCounts(adapter.Kind().Elastic, job)
	return adapter.Kind().Elastic.PodSet, int32(admitted)
}

// Resized returns the part of a job's release patch that sets the number of pods that the unit was admitted with; nil
// if the patch need not change it.
func Resized(adapter framework.Adapter, job framework.Object, unit *v1alpha1.QueueUnit) (map[string]any, error) {
	elastic := adapter.Kind().Elastic
	if elastic == nil {
		return nil, nil
	}
	admitted := int64(0)
	for i := range unit.Spec.PodSets {
		if set := &unit.Spec.PodSets[i]; set.Name == elastic.PodSet {
			if pods := lifecycle.AdmittedPods(unit, set); pods < set.Count {
				admitted = int64(pods)
			}
		}
	}
	return sized(elastic, job, admitted)
}

// Restored returns the part of a job's suspend patch that restores the number of pods that the job requests; nil if
// the patch need not change it.
func Restored(adapter framework.Adapter, job framework.Object) (map[string]any, error) {
	return sized(adapter.Kind().Elastic, job, 0)
}

// sized returns the part of a merge patch that gives a job a lower number of pods; 0 means the number
// that it requests.
func sized(elastic *framework.Elastic, job framework.Object, admitted int64) (map[string]any, error) {
	original, last, recorded := recordedCounts(elastic, job)
	_, noted := job.GetAnnotations()[wellknown.OriginalCountAnnotation]
	if elastic == nil || admitted == 0 && !noted {
		return nil, nil
	}
	object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(job)
	if err != nil {
		return nil, fmt.Errorf("encoding %s/%s: %w", job.GetNamespace(), job.GetName(), err)
	}
	annotations := map[string]any{wellknown.OriginalCountAnnotation: nil, wellknown.AdmittedCountAnnotation: nil}
	patch := map[string]any{"metadata": map[string]any{"annotations": annotations}}
	path := countPath(elastic, object)
	now, found := field(object, path...).(int64)
	if !found {
		if admitted == 0 {
			return patch, nil
		}
		return nil, fmt.Errorf("%s/%s was admitted with %d pods, but has no field %s", job.GetNamespace(), job.GetName(), admitted, strings.Join(elastic.Path, "."))
	}
	wish := now
	if recorded && now == last {
		wish = original
	}
	size := wish
	if admitted > 0 && admitted < wish {
		size = admitted
		annotations[wellknown.OriginalCountAnnotation] = writeCount(elastic.PodSet, wish)
		annotations[wellknown.AdmittedCountAnnotation] = writeCount(elastic.PodSet, admitted)
	}
	if size != now {
		err = unstructured.SetNestedField(patch, size, path...)
	}
	return patch, err
}

// recordedCounts returns the counts that the last release has recorded.
func recordedCounts(elastic *framework.Elastic, job framework.Object) (original, admitted int64, recorded bool) {
	text, noted := job.GetAnnotations()[wellknown.OriginalCountAnnotation]
	if elastic == nil || !noted {
		return 0, 0, false
	}
	original, readable := readCount(elastic.PodSet, text)
	admitted, both := readCount(elastic.PodSet, job.GetAnnotations()[wellknown.AdmittedCountAnnotation])
	return original, admitted, readable && both
}

func writeCount(podSet string, count int64) string { return fmt.Sprintf("%s=%d", podSet, count) }

func readCount(podSet, text string) (int64, bool) {
	number, found := strings.CutPrefix(text, podSet+"=")
	count, err := strconv.ParseInt(number, 10, 32)
	return count, found && err == nil && count > 0
}

// countPath returns the path of the field with the number of pods in a job, a JSON object.
func countPath(elastic *framework.Elastic, job map[string]any) []string {
	path := slices.Clone(elastic.Path)
	if !elastic.AnyCase {
		return path
	}
	at := len(path) - 2
	names, _ := field(job, path[:at]...).(map[string]any)
	if _, exact := names[path[at]]; exact {
		return path
	}
	for name := range names {
		if strings.EqualFold(name, path[at]) { // the adapter rejects a job with two of them
			path[at] = name
		}
	}
	return path
}

// minCounts reads the minimum counts of a job into the pod sets, from its annotation "podset=n,..." or its spec. Only
// an elastic pod set can have one. It returns why other counts in the annotation are ignored; empty if none is.
func minCounts(adapter framework.Adapter, job framework.Object, pods framework.Pods, podSets []v1alpha1.PodSet) (ignored string, err error) {
	least, inflexible := leastOf(adapter, job)
	given, err := readMinCounts(job.GetAnnotations()[wellknown.MinCountAnnotation], pods)
	if err != nil {
		return "", err
	}
	elastic := adapter.Kind().Elastic
	for i := range podSets {
		set := &podSets[i]
		count, is := given[set.Name]
		switch {
		case elastic == nil || set.Name != elastic.PodSet || inflexible != "":
			if is && count < set.Count {
				ignored = cmp.Or(ignored, fmt.Sprintf("pod set %q always starts with all its pods%s", set.Name, whyAll(elastic, set.Name, inflexible)))
			}
			continue
		case is && count < min(least, set.Count):
			return "", fmt.Errorf("annotation %s: the minimum count of pod set %q must be at least %d, which the job itself requires, not %d",
				wellknown.MinCountAnnotation, set.Name, least, count)
		case !is:
			count = least
		}
		if count = min(count, set.Count); count > 0 { // some of its pods may have succeeded
			set.MinCount = new(count)
		}
	}
	return ignored, nil
}

// whyAll explains why an elastic pod set of the job starts with all its pods.
func whyAll(elastic *framework.Elastic, podSet, inflexible string) string {
	if elastic != nil && podSet == elastic.PodSet && inflexible != "" {
		return ": " + inflexible
	}
	return ""
}

// leastOf returns how many pods of its elastic pod set the job needs, and why it needs all.
func leastOf(adapter framework.Adapter, job framework.Object) (int32, string) {
	reader, reads := adapter.(framework.ElasticReader)
	if !reads {
		return 0, ""
	}
	least, why := reader.Least(job)
	return max(least, 0), why
}

func readMinCounts(text string, pods framework.Pods) (map[string]int32, error) {
	if text == "" {
		return nil, nil
	}
	most := make(map[string]int32, len(pods.Sets))
	names := make([]string, len(pods.Sets))
	for i, set := range pods.Sets {
		most[set.Name], names[i] = set.Count+set.Ended, set.Name
	}
	given := make(map[string]int32, len(pods.Sets))
	for part := range strings.SplitSeq(text, ",") {
		name, number, _ := strings.Cut(part, "=")
		name, number = strings.TrimSpace(name), strings.TrimSpace(number)
		full, there := most[name]
		count, err := strconv.ParseInt(number, 10, 32)
		_, twice := given[name]
		switch {
		case !there:
			return nil, fmt.Errorf("annotation %s: the job has no pod set %q, only %s; write the annotation as PODSET=NUMBER, separated by commas",
				wellknown.MinCountAnnotation, name, strings.Join(names, ", "))
		case err != nil || count < 1 || count > int64(full):
			return nil, fmt.Errorf("annotation %s: the minimum count of pod set %q must be an integer from 1 to %d (its full count), not %q",
				wellknown.MinCountAnnotation, name, full, number)
		case twice:
			return nil, fmt.Errorf("annotation %s: pod set %q is listed twice; remove one entry", wellknown.MinCountAnnotation, name)
		}
		given[name] = int32(count)
	}
	return given, nil
}
