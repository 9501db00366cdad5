package reconciler

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"testing"
	"time"

	rayv1 "github.com/ray-project/kuberay/ray-operator/apis/ray/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	"kube-queue.dev/kube-queue/extensions/framework"
	"kube-queue.dev/kube-queue/extensions/framework/decision"
	batchjob "kube-queue.dev/kube-queue/extensions/job"
	"kube-queue.dev/kube-queue/extensions/pod"
	"kube-queue.dev/kube-queue/extensions/raycluster"
)

func TestSubmissionStaysInTheSecondOfCreation(t *testing.T) {
	tests := []struct {
		name       string
		seen, want time.Duration
	}{
		{"a job seen at once keeps the time", 120 * time.Millisecond, 120 * time.Millisecond},
		{"one seen late comes last of its second", time.Hour, time.Second - time.Microsecond},
		{"one seen before it was created, by clocks that differ, comes first", -time.Second, 0},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got := submission(noon, noon.Add(test.seen)); !got.Time.Equal(noon.Add(test.want)) {
				t.Errorf("it is %v", got)
			}
		})
	}
}

func TestAUnitHasTheKindOfItsJobAsALabel(t *testing.T) {
	unit := newUnit(batchv1.SchemeGroupVersion.WithKind("Job"), &observation{key: queuedKey, job: marked(), desired: &decision.Desired{}, now: noon})
	if !maps.Equal(unit.Labels, map[string]string{"kube-queue/kind": "Job"}) || unit.Spec.ConsumerRef.Kind != "Job" {
		t.Errorf("the labels are %v, and the job is %+v", unit.Labels, unit.Spec.ConsumerRef)
	}
}

func TestAUnitThatExistsIsAwaitedIfItIsThatOfTheJobAndReportedOtherwise(t *testing.T) {
	for job, awaited := range map[types.UID]bool{"j": true, "": false} {
		existing, said := waitingUnit(""), &spoken{}
		existing.Spec.ConsumerRef.UID = job
		config := jsonServer(t, func(req *http.Request) any {
			if req.Method == http.MethodPost {
				return apierrors.NewAlreadyExists(v1alpha1.Resource("queueunits"), existing.Name)
			}
			return existing
		})
		r := frameworkOf(t, Options{Config: config, Adapters: []framework.Adapter{batchjob.New()}, Events: said}).reconcilers[0]
		cached(t, r.cached, marked())
		for range 2 {
			turn := r.arrivals.Enter()
			_, err := r.reconcile(t.Context(), turn, queuedKey, r.Clock.Now())
			turn.End()
			if (err == nil) != awaited || r.memory.awaited.get(queuedKey).unit.value == existing.ResourceVersion != awaited {
				t.Errorf("of job %q: %+v is awaited (%v)", job, r.memory.awaited.get(queuedKey), err)
			}
			r.Clock.(*clocktesting.FakeClock).Step(refusedAfter)
		}
		if reported := len(said.repeated) == 1 && said.repeated[0].Reason == wellknown.EventUnitRefused && strings.Contains(said.repeated[0].Message, "delete it"); reported == awaited {
			t.Errorf("of job %q: the events are %+v", job, said.repeated)
		}
	}
}

func TestARestoredUnitHasThePodsThatItsJobWasReleasedWith(t *testing.T) {
	for parallelism, pods := range map[int32]string{4: "4, at least 0, with 4 cpu", 5: "5, at least 2, with 5 cpu"} { // its owner may have changed it
		object := jobWith(map[string]string{wellknown.ReleasedAnnotation: "1", wellknown.OriginalCountAnnotation: "main=10",
			wellknown.AdmittedCountAnnotation: "main=4", wellknown.MinCountAnnotation: "main=2"})
		object.APIVersion, object.Kind, object.Spec.Suspend, object.Spec.Parallelism = "batch/v1", "Job", nil, &parallelism
		object.Spec.Template.Spec.Containers = []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse("1")}}}}
		var restored v1alpha1.QueueUnit
		config := jsonServer(t, func(req *http.Request) any {
			if req.Method == http.MethodGet {
				return object
			}
			if err := json.NewDecoder(req.Body).Decode(&restored); err != nil {
				t.Error(err)
			}
			return restored
		})
		r := frameworkOf(t, Options{Config: config, Adapters: []framework.Adapter{batchjob.New()}}).reconcilers[0]
		o := r.observe(queuedKey, object, nil, noon, nil)
		if done, err := r.act(t.Context(), o, decision.RestoreUnit); !done || err != nil {
			t.Fatal(done, err)
		}
		set := restored.Spec.PodSets[0]
		if got := fmt.Sprintf("%d, at least %d, with %s cpu", set.Count, ptr.Deref(set.MinCount, 0), restored.Spec.Resource.Cpu()); got != pods {
			t.Errorf("with parallelism %d it has %s", parallelism, got)
		}
	}
}

// These pods decide what the unit is charged.
func TestALostUnitWaitsForTheCacheOfGatedPods(t *testing.T) {
	r := frameworkOf(t, Options{Adapters: []framework.Adapter{raycluster.New()}, Pods: pod.Adapters()}).reconcilers[0]
	cached(t, r.cached, &rayv1.RayCluster{ObjectMeta: metav1.ObjectMeta{Namespace: queuedKey.Namespace, Name: queuedKey.Name, UID: "j", ResourceVersion: "1",
		Annotations: map[string]string{wellknown.ReleasedAnnotation: "1"}}, Status: rayv1.RayClusterStatus{State: rayv1.Ready}})
	turn := r.arrivals.Enter()
	defer turn.End()
	if after, err := r.reconcile(t.Context(), turn, queuedKey, noon); after != time.Second || err != nil {
		t.Errorf("it is looked at again in %v (%v)", after, err)
	}
}
