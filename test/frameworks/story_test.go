package frameworks

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	helpers "k8s.io/component-helpers/resource"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/test/lab"
)

// forever is the run time of jobs that are deleted while they run.
const forever = time.Hour

// job is one job of a specimen.
type job struct {
	name  string
	runs  time.Duration
	fails bool
}

// specimen is a kind of job.
type specimen struct {
	kind     string
	resource schema.GroupVersionResource
	// extension is its name in --enabled-extensions.
	extension string
	// manifest makes a job, held by its opt-in mark alone.
	manifest func(job) string
	// total is what one job asks for, as the max of a quota.
	total string
	// suspend is the path of the suspend field.
	suspend []string
	// state reads what the framework itself says of the job.
	state func(*unstructured.Unstructured) string
	// running, succeeded and failed are its states. A kind that never ends has no
	// succeeded.
	running, succeeded, failed string
	// queuing is the state of a job that waits, for kinds that show it.
	queuing string
	// writes is how many writes on the job a release may take.
	writes int
}

// story is one specimen's, in a namespace of its own that has room for one job.
type story struct {
	specimen
	*lab.Lab
	t *testing.T
}

// namespace of the specimen's story.
func (s specimen) namespace() string { return strings.ToLower(s.extension) }

// tell tells the stories of all specimens, side by side.
func tell(t *testing.T, site *lab.Site, specimens ...specimen) {
	extensions := []string{"job"}
	var groups []string
	for _, s := range specimens {
		if s.extension != "job" {
			extensions = append(extensions, s.extension)
		}
		groups = append(groups, fmt.Sprintf("{name: %s, namespaces: [%s], max: %s}", s.namespace(), s.namespace(), s.total))
	}
	whole := site.Lab(t, "default")
	site.Both(t, strings.Join(extensions, ","))
	whole.TreeOf(groups...)
	t.Run("stories", func(t *testing.T) {
		for _, s := range specimens {
			t.Run(s.extension, func(t *testing.T) {
				t.Parallel()
				told := &story{specimen: s, Lab: site.Part(t, s.namespace()), t: t}
				told.tell()
			})
		}
	})
	whole.ExpectFree()
}

func (s *story) tell() {
	s.Apply(s.manifest(job{name: "good", runs: 6 * time.Second}))
	unit := s.WaitForPhase(s.kind, "good", v1alpha1.PhaseDequeued, v1alpha1.PhaseRunning)
	s.expectRequests(unit, "good")
	s.waitForState("good", s.running)
	s.WaitForPhase(s.kind, "good", v1alpha1.PhaseRunning)

	s.whileQueued()
	if s.succeeded == "" {
		s.delete("good", "background")
		s.WaitForPhase(s.kind, "bad", v1alpha1.PhaseRunning)
		s.delete("bad", "background")
	} else {
		s.end("good", s.succeeded, v1alpha1.PhaseSucceeded)
		s.end("bad", s.failed, v1alpha1.PhaseFailed)
		s.expectOneRelease("good")
		s.delete("good", "background")
		s.delete("bad", "orphan")
	}
	for _, cascade := range []string{"background", "orphan"} {
		name := "long-" + cascade
		s.Apply(s.manifest(job{name: name, runs: forever}))
		s.WaitForPhase(s.kind, name, v1alpha1.PhaseRunning)
		s.delete(name, cascade)
	}
}

// whileQueued has jobs wait behind the one that runs.
func (s *story) whileQueued() {
	for _, name := range []string{"bad", "gone", "left"} {
		s.Apply(s.manifest(job{name: name, runs: short, fails: name == "bad"}))
	}
	for _, name := range []string{"bad", "gone", "left"} {
		unit := s.WaitForReason(s.kind, name, "QuotaExceeded")
		if pods := s.Pods(name); len(pods) > 0 {
			s.t.Errorf("%s has %d pods while it waits", name, len(pods))
		}
		if suspended, _, _ := unstructured.NestedBool(s.Object(s.resource, name).Object, s.suspend...); !suspended {
			s.t.Errorf("%s is not suspended while it waits", name)
		}
		if event := s.WaitForEvent(name, "Queued"); !strings.Contains(event.Message, unit.Name) {
			s.t.Errorf("the event Queued of %s does not name its unit: %q", name, event.Message)
		}
	}
	if s.queuing != "" {
		s.waitForState("bad", s.queuing)
	}
	s.Patch(s.resource, "bad", `{"metadata":{"annotations":{"scheduling.x-k8s.io/priority":"7"}}}`)
	lab.Eventually(s.t, 20*time.Second, "the priority of bad is 7", func() (bool, string) {
		unit := s.Unit(s.kind, "bad")
		return unit != nil && unit.Spec.Priority == 7, fmt.Sprint(unit)
	})
	s.delete("gone", "background")
	s.delete("left", "orphan")
}

// end waits until the job and its unit have ended.
func (s *story) end(name, state string, phase v1alpha1.QueueUnitPhase) {
	s.t.Helper()
	s.waitForState(name, state)
	s.WaitForPhase(s.kind, name, phase)
}

func (s *story) waitForState(name, state string) {
	s.t.Helper()
	lab.Eventually(s.t, time.Minute, fmt.Sprintf("%s %s is %s", s.kind, name, state), func() (bool, string) {
		now := s.state(s.Object(s.resource, name))
		return now == state, now
	})
}

// delete deletes the job and waits until its unit is gone, whatever was to become
// of what the job owns.
func (s *story) delete(name, cascade string) {
	s.t.Helper()
	policy := map[string]metav1.DeletionPropagation{"background": metav1.DeletePropagationBackground, "orphan": metav1.DeletePropagationOrphan}[cascade]
	lab.Must(s.t, s.Dynamic.Resource(s.resource).Namespace(s.Namespace).Delete(s.t.Context(), name, metav1.DeleteOptions{PropagationPolicy: &policy}))
	lab.Eventually(s.t, time.Minute, fmt.Sprintf("%s %s and its unit are gone", s.kind, name), func() (bool, string) {
		_, err := s.Dynamic.Resource(s.resource).Namespace(s.Namespace).Get(s.t.Context(), name, metav1.GetOptions{})
		return apierrors.IsNotFound(err) && s.Unit(s.kind, name) == nil, fmt.Sprint("job: ", err, ", unit: ", s.Unit(s.kind, name) != nil)
	})
	if cascade == "orphan" {
		s.ClearOrphans(name)
	}
}

// expectRequests compares the unit's total with the sum over the job's real pods.
func (s *story) expectRequests(unit *v1alpha1.QueueUnit, name string) {
	s.t.Helper()
	lab.Eventually(s.t, 30*time.Second, fmt.Sprintf("the pods of %s ask for what its unit says", name), func() (bool, string) {
		pods := s.Pods(name)
		sum := sumOf(pods)
		return equality.Semantic.DeepEqual(sum, unit.Spec.Resource), fmt.Sprintf("%d pods ask for %v, the unit for %v", len(pods), text(sum), text(unit.Spec.Resource))
	})
	if podCount := countOf(unit); podCount > 0 && podCount != len(s.Pods(name)) {
		s.t.Errorf("%s has %d pods, and its unit says %d", name, len(s.Pods(name)), podCount)
	}
}

func countOf(unit *v1alpha1.QueueUnit) int {
	sum := 0
	for _, set := range unit.Spec.PodSets {
		sum += int(set.Count)
	}
	return sum
}

func sumOf(pods []corev1.Pod) corev1.ResourceList {
	sum := corev1.ResourceList{}
	for i := range pods {
		for name, quantity := range helpers.PodRequests(&pods[i], helpers.PodResourcesOptions{}) {
			total := sum[name]
			total.Add(quantity)
			sum[name] = total
		}
	}
	return sum
}

func text(list corev1.ResourceList) string {
	var parts []string
	for name, quantity := range list {
		parts = append(parts, fmt.Sprintf("%s %s", name, quantity.String()))
	}
	slices.Sort(parts)
	return strings.Join(parts, ", ")
}

// expectOneRelease counts in the audit log what was written on the job.
func (s *story) expectOneRelease(name string) {
	s.t.Helper()
	table, err := s.Log(s.t.Context()).Writes(s.Audit)
	lab.Must(s.t, err)
	for _, j := range table.Jobs {
		if j.Namespace == s.Namespace && j.Name == name {
			s.t.Logf("%s %s: %d writes: %d on the job, %d on its unit, %d events", s.kind, name, j.Total(), j.OnJob, j.OnUnit, j.OnEvents)
			if j.OnJob > 1+s.writes {
				s.t.Errorf("%d writes on %s %s, want one: %v", j.OnJob, s.kind, name, j.By)
			}
			return
		}
	}
	s.t.Errorf("the audit log knows no writes on %s %s", s.kind, name)
}
