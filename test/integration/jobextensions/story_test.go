package jobextensions

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/yaml"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	"kube-queue.dev/kube-queue/extensions/framework/decision"
	"kube-queue.dev/kube-queue/pkg/clientset"
	"kube-queue.dev/kube-queue/test/audit"
	"kube-queue.dev/kube-queue/test/clustertest"
	"kube-queue.dev/kube-queue/test/harness"
)

const (
	patience = 30 * time.Second // harness.Eventually waits longer on a slow machine
	mark     = "scheduling.x-k8s.io/suspend"
)

// kind is a kind of job in the stories.
type kind struct {
	name     string
	resource schema.GroupVersionResource
	// suspend is the path of the real suspend field.
	suspend []string
	// manifest is a job with one pod of 1 cpu.
	manifest string
}

var (
	batchJob = kind{"Job", schema.GroupVersionResource{Group: "batch", Version: "v1", Resource: "jobs"}, []string{"spec", "suspend"},
		`{apiVersion: batch/v1, kind: Job, metadata: {name: a}, spec: {template: {spec: {restartPolicy: Never,
			containers: [{name: main, image: main, resources: {requests: {cpu: 1}}}]}}}}`}
	tfJob = kind{"TFJob", schema.GroupVersionResource{Group: "kubeflow.org", Version: "v1", Resource: "tfjobs"}, []string{"spec", "runPolicy", "suspend"},
		`{apiVersion: kubeflow.org/v1, kind: TFJob, metadata: {name: a}, spec: {tfReplicaSpecs: {Worker: {replicas: 1,
			template: {spec: {containers: [{name: tensorflow, image: main, resources: {requests: {cpu: 1}}}]}}}}}}`}
)

// story is one job and its unit, in their own namespace.
type story struct {
	*testing.T
	cluster  *clustertest.Cluster
	kind     kind
	ns       string
	job      types.UID
	jobs     dynamic.ResourceInterface
	core     kubernetes.Interface
	units    *clientset.Clientset // as the administrator
	decider  *clientset.Clientset // as kube-queue-controller
	manifest map[string]any
}

// begin creates a namespace with a job of the kind, merged with values.
func begin(t *testing.T, c *clustertest.Cluster, k kind, merged ...string) *story {
	t.Helper()
	core, err := kubernetes.NewForConfig(c.Config())
	harness.Must(t, err)
	ns, err := core.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "story-", Labels: map[string]string{"story": ""}}}, metav1.CreateOptions{})
	harness.Must(t, err)
	return beginIn(t, c, ns.Name, k, merged...)
}

// beginIn creates a job of the kind in a namespace that exists.
func beginIn(t *testing.T, c *clustertest.Cluster, ns string, k kind, merged ...string) *story {
	t.Helper()
	s := &story{T: t, cluster: c, kind: k, ns: ns, manifest: map[string]any{}}
	for _, text := range append([]string{k.manifest}, merged...) {
		var part map[string]any
		s.must(yaml.Unmarshal([]byte(text), &part))
		decision.Merge(s.manifest, part)
	}
	config, err := account(c, "kube-queue-controller")
	s.must(err)
	s.decider, err = clientset.NewForConfig(config)
	s.must(err)
	s.units, err = clientset.NewForConfig(c.Config())
	s.must(err)
	s.core, err = kubernetes.NewForConfig(c.Config())
	s.must(err)
	client, err := dynamic.NewForConfig(rest.CopyConfig(c.Config()))
	s.must(err)
	s.jobs = client.Resource(k.resource).Namespace(s.ns)
	s.create()
	return s
}

func (s *story) must(err error) {
	s.Helper()
	harness.Must(s.T, err)
}

// create creates the job of the manifest.
func (s *story) create() {
	s.Helper()
	created, err := s.jobs.Create(s.Context(), &unstructured.Unstructured{Object: runtime.DeepCopyJSON(s.manifest)}, metav1.CreateOptions{})
	s.must(err)
	s.job = created.GetUID()
}

// eventually waits until check returns "".
func (s *story) eventually(what string, check func() string) {
	s.Helper()
	harness.Eventually(s.T, patience, what, func() (bool, string) {
		wrong := check()
		return wrong == "", wrong
	})
}

// stays checks that check returns "" for a while.
func (s *story) stays(what string, check func() string) {
	s.Helper()
	harness.Never(s.T, 2*time.Second, what, func() (bool, string) {
		wrong := check()
		return wrong != "", wrong
	})
}

// unit returns the unit of the job, if any.
func (s *story) unit() *v1alpha1.QueueUnit {
	list, err := s.units.SchedulingV1alpha1().QueueUnits(s.ns).List(s.Context(), metav1.ListOptions{})
	s.must(err)
	for i := range list.Items {
		if list.Items[i].Spec.ConsumerRef.UID == s.job {
			return &list.Items[i]
		}
	}
	return nil
}

// hasUnit waits for a unit that passes the check.
func (s *story) hasUnit(what string, passes func(*v1alpha1.QueueUnit) bool) *v1alpha1.QueueUnit {
	s.Helper()
	var unit *v1alpha1.QueueUnit
	s.eventually("a unit "+what, func() string {
		if unit = s.unit(); unit == nil {
			return "there is no unit"
		}
		if !passes(unit) {
			return asJSON(unit.Spec) + asJSON(unit.Status)
		}
		return ""
	})
	return unit
}

func (s *story) enqueued() *v1alpha1.QueueUnit {
	s.Helper()
	return s.hasUnit("is there", func(*v1alpha1.QueueUnit) bool { return true })
}

func (s *story) inPhase(phase v1alpha1.QueueUnitPhase) *v1alpha1.QueueUnit {
	s.Helper()
	return s.hasUnit("in phase "+string(phase), func(u *v1alpha1.QueueUnit) bool { return u.Status.Phase == phase })
}

// evicted waits for condition Evicted.
func (s *story) evicted(status metav1.ConditionStatus, reason wellknown.Reason) *v1alpha1.QueueUnit {
	s.Helper()
	return s.hasUnit(fmt.Sprintf("with Evicted=%s, %s", status, reason), func(u *v1alpha1.QueueUnit) bool {
		c := apimeta.FindStatusCondition(u.Status.Conditions, wellknown.ConditionEvicted)
		return c != nil && c.Status == status && c.Reason == string(reason)
	})
}

// decide writes a unit's status as the controller does. job-extensions may write the unit at the same time.
func (s *story) decide(status map[string]any) {
	s.Helper()
	s.must(retry.RetryOnConflict(retry.DefaultRetry, func() error {
		unit := s.unit()
		if unit == nil {
			s.Fatal("there is no unit to decide on")
		}
		data := asJSON(map[string]any{"metadata": map[string]any{"resourceVersion": unit.ResourceVersion}, "status": status})
		_, err := s.decider.SchedulingV1alpha1().QueueUnits(s.ns).Patch(s.Context(), unit.Name, types.MergePatchType, []byte(data), metav1.PatchOptions{}, "status")
		return err
	}))
}

// admit admits the unit as the controller does. Its checks, which may annotate the pods, have passed.
func (s *story) admit(checks ...v1alpha1.AdmissionCheckState) {
	s.Helper()
	unit := s.enqueued()
	conditions := unit.Status.Conditions
	apimeta.RemoveStatusCondition(&conditions, wellknown.ConditionEvicted)
	s.decide(map[string]any{
		"phase": "Dequeued", "attempts": unit.Status.Attempts + 1, "reason": nil, "message": nil,
		"dequeueTime": metav1.NowMicro(), "quota": "root/team", "queue": "root-team", "conditions": conditions, "admissionChecks": checks,
	})
}

func (s *story) refuse(reason, message string) {
	s.Helper()
	s.decide(map[string]any{"phase": "Enqueued", "reason": reason, "message": message})
}

// evict evicts the unit as the controller does.
func (s *story) evict(reason wellknown.Reason) {
	s.Helper()
	conditions := s.unit().Status.Conditions
	apimeta.SetStatusCondition(&conditions, metav1.Condition{Type: wellknown.ConditionEvicted, Status: metav1.ConditionTrue, Reason: string(reason), Message: "for another"})
	s.decide(map[string]any{"conditions": conditions})
}

// get reads the job.
func (s *story) get() *unstructured.Unstructured {
	s.Helper()
	job, err := s.jobs.Get(s.Context(), "a", metav1.GetOptions{})
	s.must(err)
	return job
}

func (s *story) suspended() bool {
	s.Helper()
	value, _, _ := unstructured.NestedBool(s.get().Object, s.kind.suspend...)
	return value
}

func (s *story) becomesSuspended(want bool) {
	s.Helper()
	s.eventually(fmt.Sprint("suspend is ", want), func() string {
		if got := s.suspended(); got != want {
			return fmt.Sprint("suspend is ", got)
		}
		return ""
	})
}

// change patches the job as a user, with a merge patch in YAML.
func (s *story) change(patch string) {
	s.Helper()
	data, err := yaml.YAMLToJSON([]byte(patch))
	s.must(err)
	_, err = s.jobs.Patch(s.Context(), "a", types.MergePatchType, data, metav1.PatchOptions{})
	s.must(err)
}

// setSuspend sets the suspend field as a user.
func (s *story) setSuspend(value bool) {
	s.Helper()
	object := map[string]any{}
	s.must(unstructured.SetNestedField(object, value, s.kind.suspend...))
	s.change(asJSON(object))
}

// event waits for an event of job-extensions on the job.
func (s *story) event(kind, reason, part string) {
	s.Helper()
	s.eventually("event "+reason, func() string {
		var all []string
		for _, e := range s.events() {
			if e.Type == kind && e.Reason == reason && strings.Contains(e.Message, part) {
				return ""
			}
			all = append(all, e.Type+" "+e.Reason+" "+e.Message)
		}
		return fmt.Sprintf("%d events\n%s", len(all), strings.Join(all, "\n"))
	})
}

func (s *story) events() []corev1.Event {
	s.Helper()
	list, err := s.core.CoreV1().Events(s.ns).List(s.Context(), metav1.ListOptions{FieldSelector: "involvedObject.uid=" + string(s.job) + ",source=job-extensions"})
	s.must(err)
	return list.Items
}

// writes returns the writes for the job so far, from the audit log.
func (s *story) writes() audit.JobWrites {
	s.Helper()
	s.must(s.cluster.CompleteAuditLog(s.Context()))
	log, err := audit.ReadFile(s.cluster.AuditLog)
	s.must(err)
	for _, job := range log.Writes().Jobs {
		if job.Namespace == s.ns && job.UID == string(s.job) {
			return job
		}
	}
	return audit.JobWrites{}
}

// cost checks the number of writes of both programs, including those of the test as the controller.
// Writes that failed with a conflict do not count.
func (s *story) cost(want int) {
	s.Helper()
	got := s.writes()
	s.Logf("%d writes: %d on the job, %d on the unit, %d events; %d failed", got.Total(), got.OnJob, got.OnUnit, got.OnEvents, got.Failed)
	if got.Total() != want || got.Failed > 1 {
		s.Errorf("it cost %d writes and %d failed, not %d: %v", got.Total(), got.Failed, want, got.By)
	}
}

func asJSON(v any) string {
	data, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(data)
}
