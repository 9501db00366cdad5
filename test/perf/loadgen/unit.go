package loadgen

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	"kube-queue.dev/kube-queue/test/perf/scenario"
)

// Placeholders in a pattern for the values that differ between units.
const (
	slotUnit      = "@unit@"
	slotJob       = "@job@"
	slotNamespace = "@namespace@"
	slotUID       = "@uid@"
	slotTime      = "2001-02-03T04:05:06.000007Z"
)

var slots = []string{slotUnit, slotJob, slotNamespace, slotUID, slotTime}

// pattern is the body of a unit, split at its placeholders: text and placeholders alternate.
type pattern []string

// newPattern returns the pattern of units of one class and shape. The units are like those that
// job-extensions creates for a Job with one pod, but have no owner, because the jobs do not exist.
func newPattern(class *scenario.Class, number int) (pattern, error) {
	at, err := time.Parse(time.RFC3339, slotTime)
	if err != nil {
		return nil, err
	}
	requests := corev1.ResourceList{}
	for name, text := range class.RequestsOf(number) {
		if requests[corev1.ResourceName(name)], err = resource.ParseQuantity(text); err != nil {
			return nil, fmt.Errorf("class %s: %s %q: %w", class.Name, name, text, err)
		}
	}
	submitted := metav1.NewMicroTime(at)
	body, err := json.Marshal(&v1alpha1.QueueUnit{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: "QueueUnit"},
		ObjectMeta: metav1.ObjectMeta{Namespace: slotNamespace, Name: slotUnit},
		Spec: v1alpha1.QueueUnitSpec{
			ConsumerRef: v1alpha1.ConsumerReference{
				APIVersion: "batch/v1", Kind: "Job", Namespace: slotNamespace, Name: slotJob, UID: slotUID,
			},
			Priority: class.Priority, SubmissionTime: &submitted, Active: new(true), Preemptible: new(true),
			PodSets:  []v1alpha1.PodSet{{Name: "main", Count: 1, Requests: requests, Limits: requests}},
			Resource: requests,
		},
	})
	if err != nil {
		return nil, err
	}
	return cut(string(body)), nil
}

func cut(text string) pattern {
	var pieces pattern
	for text != "" {
		first, slot := len(text), ""
		for _, s := range slots {
			if at := strings.Index(text, s); at >= 0 && at < first {
				first, slot = at, s
			}
		}
		pieces = append(pieces, text[:first])
		if slot != "" {
			pieces = append(pieces, slot)
		}
		text = text[first+len(slot):]
	}
	return pieces
}

// identity has the values that identify a unit.
type identity struct {
	namespace, job, unit string
	index                int
}

// indexDigits is the number of digits at the end of a unit's name, in place of the hash of
// job-extensions.
const indexDigits = 10

func (s *Run) identityOf(index int) identity {
	a := &s.arrivals[index]
	job := s.scenario.Classes[a.Class].Name + "-" + strconv.Itoa(int(a.Leaf)) + "-" + strconv.Itoa(int(a.Number))
	return identity{namespace: s.namespaces[a.Leaf], job: job, unit: fmt.Sprintf("%s-job-%0*x", job, indexDigits, index), index: index}
}

// indexOf returns the index at the end of a unit's name. It returns false for other units.
func indexOf(name []byte) (int, bool) {
	if len(name) <= indexDigits {
		return 0, false
	}
	index, err := strconv.ParseUint(string(name[len(name)-indexDigits:]), 16, 32)
	return int(index), err == nil
}

// body returns the body of one unit.
func (p pattern) body(id identity, submitted time.Time) []byte {
	size := 0
	for _, piece := range p {
		size += len(piece)
	}
	body := make([]byte, 0, size+128)
	for i, piece := range p {
		if i%2 == 0 {
			body = append(body, piece...)
			continue
		}
		switch piece {
		case slotUnit:
			body = append(body, id.unit...)
		case slotJob:
			body = append(body, id.job...)
		case slotNamespace:
			body = append(body, id.namespace...)
		case slotUID:
			body = fmt.Appendf(body, "00000000-0000-4000-8000-%012x", id.index)
		case slotTime:
			body = submitted.UTC().AppendFormat(body, metav1.RFC3339Micro)
		}
	}
	return body
}

// endPatch returns the patch of job-extensions after the job of a released unit has succeeded. The
// API server refuses it if the unit has another version. "" matches any version.
func endPatch(version string, at time.Time) []byte {
	now := at.UTC().Format(time.RFC3339)
	guard := ""
	if version != "" {
		guard = `"metadata":{"resourceVersion":"` + version + `"},`
	}
	return fmt.Appendf(nil, `{%s"status":{"phase":"Succeeded","conditions":[{"type":%q,"status":"True","lastTransitionTime":%q,"reason":"CompletionsReached","message":"Reached expected number of succeeded pods"}]}}`,
		guard, wellknown.ConditionFinished, now)
}

// releasePatch returns the patch of kube-queue-controller that releases a unit. It is used only to
// measure the API server.
func releasePatch(quota string, at time.Time) []byte {
	return fmt.Appendf(nil, `{"status":{"phase":"Dequeued","attempts":1,"dequeueTime":%q,"quota":%q,"queue":%q,"reason":null,"message":null,"conditions":null}}`,
		at.UTC().Format(metav1.RFC3339Micro), quota, strings.ReplaceAll(quota, "/", "-"))
}
