package loadgen

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/pkg/lifecycle"
)

// identity has the values that identify a unit.
type identity struct{ namespace, job, unit string }

// indexDigits is the number of digits at the end of a unit's name, in place of the hash of
// job-extensions.
const indexDigits = 10

func (r *Run) identityOf(index int) identity {
	a := &r.arrivals[index]
	job := fmt.Sprintf("%s-%d-%d", r.Classes[a.Class].Name, a.Leaf, a.Number)
	return identity{namespace: r.namespaces[a.Leaf], job: job, unit: fmt.Sprintf("%s-job-%0*x", job, indexDigits, index)}
}

// Index returns the index of a unit by name. It returns false for a unit that is not part of the
// run.
func (r *Run) Index(name string) (int, bool) {
	if len(name) <= indexDigits {
		return 0, false
	}
	number, err := strconv.ParseUint(name[len(name)-indexDigits:], 16, 32)
	index := int(number)
	return index, err == nil && index < len(r.units) && r.identityOf(index).unit == name
}

// body returns a unit like those that job-extensions creates for a Job with one pod, but without an
// owner, because the jobs do not exist.
func (r *Run) body(index int) ([]byte, error) {
	arrival, id := &r.arrivals[index], r.identityOf(index)
	class := &r.Classes[arrival.Class]
	requests := class.RequestsOf(int(arrival.Number))
	// Different times, so that units are ordered by arrival.
	submitted := metav1.NewMicroTime(r.start.Add(arrival.At + time.Duration(index)*time.Microsecond))
	return json.Marshal(&v1alpha1.QueueUnit{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: "QueueUnit"},
		ObjectMeta: metav1.ObjectMeta{Namespace: id.namespace, Name: id.unit},
		Spec: v1alpha1.QueueUnitSpec{
			ConsumerRef: v1alpha1.ConsumerReference{
				APIVersion: "batch/v1", Kind: "Job", Namespace: id.namespace, Name: id.job,
				UID: types.UID(fmt.Sprintf("00000000-0000-4000-8000-%012x", index)),
			},
			Priority: class.Priority, SubmissionTime: &submitted, Active: new(true), Preemptible: new(true),
			PodSets:  []v1alpha1.PodSet{{Name: "main", Count: 1, Requests: requests, Limits: requests}},
			Resource: requests,
		},
	})
}

// endPatch returns the patch of job-extensions after the job of a released unit has succeeded. The
// API server refuses it if the unit has another version. "" matches any version.
func endPatch(version string, at time.Time) ([]byte, error) {
	status := lifecycle.Finished(&v1alpha1.QueueUnit{}, true, "CompletionsReached", "Reached expected number of succeeded pods", metav1.NewTime(at))
	patch := map[string]any{"status": status}
	if version != "" {
		patch["metadata"] = map[string]any{"resourceVersion": version}
	}
	return json.Marshal(patch)
}

// releasePatch returns the patch of kube-queue-controller that releases a unit. It is used only to
// measure the API server.
func releasePatch(quota string, at time.Time) ([]byte, error) {
	place := lifecycle.Place{Quota: quota, Queue: strings.ReplaceAll(quota, "/", "-")}
	return json.Marshal(map[string]any{"status": lifecycle.Dequeued(place, 1, metav1.NewMicroTime(at))})
}
