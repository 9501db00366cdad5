package silence

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	schedulingv1alpha1 "kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/test/audit"
	"kube-queue.dev/kube-queue/test/clustertest"
	"kube-queue.dev/kube-queue/test/harness"
)

// silence is something that holds a job.
type silence struct {
	name string
	// job returns the manifest of a job with this name.
	job func(name string) string
	// before prepares the cluster. cause starts to hold the job after its creation. Both may be nil.
	before, cause func(t *testing.T, l *harness.Env, name string)
	// says are parts of the event with the reason: what holds the job, and who can change it.
	reason string
	says   []string
	// normal: the event is not a warning, because no user has to act.
	normal bool
}

// isOld waits until a job is too old to be suspended late.
func isOld(t *testing.T, job *unstructured.Unstructured) {
	t.Helper()
	harness.Eventually(t, time.Minute, job.GetName()+" is no new job", func() (bool, string) {
		age := time.Since(job.GetCreationTimestamp().Time)
		return age > 11*time.Second, fmt.Sprint("it is ", age, " old")
	})
}

func silences() []silence {
	return []silence{
		{name: "its kind is not queued", job: held{}.rayJob,
			reason: "KindNotQueued", says: []string{"job-extensions does not queue RayJobs", "an administrator can add rayjob to --annotation-extensions", "remove the annotation"}},
		{name: "it belongs to Kueue, which is not installed", job: held{labels: "kueue.x-k8s.io/queue-name: users"}.job,
			reason: "KueueNotInstalled", says: []string{"label kueue.x-k8s.io/queue-name assigns the job to Kueue, which is not installed", "remove the label"}},
		{name: "it is only suspended and belongs to Kueue", job: held{unmarked: true, labels: "kueue.x-k8s.io/queue-name: users", spec: "suspend: true,"}.job,
			reason: "KueueNotInstalled", says: []string{"remove the label"}},
		{name: "it was found running", job: held{unmarked: true}.job,
			cause: func(t *testing.T, l *harness.Env, name string) {
				harness.Eventually(t, time.Minute, name+" runs", func() (bool, string) {
					ready, _, _ := unstructured.NestedInt64(l.Object(harness.Jobs, name).Object, "status", "ready")
					return ready > 0, "no pod is ready"
				})
				isOld(t, l.Object(harness.Jobs, name))
				l.Patch(harness.Jobs, name, `{"metadata":{"annotations":{"scheduling.x-k8s.io/suspend":"true"}}}`)
			},
			reason: "NotQueued", says: []string{"the job was already running", "suspend the job to queue it"}},
		{name: "an annotation takes it out of the queue", job: held{annotations: `kube-queue/bypass: "true"`, spec: "suspend: true,"}.job,
			reason: "NotQueued", says: []string{"annotation kube-queue/bypass takes the job out of the queue", "unsuspend it", "remove the annotation"}},
		{name: "another controller manages it", job: held{spec: "suspend: true, managedBy: example.com/other,"}.job,
			reason: "NotQueued", says: []string{"managedBy assigns the job to example.com/other", "create the job without managedBy"}},
		{name: "it requests more than its quota has", job: held{cpu: "100"}.job,
			reason: "Queued", says: []string{"ExceedsMaxQuota", "root/team", "ask an administrator to raise the max"}},
		{name: "its quota is used", job: held{cpu: "4"}.job,
			before: func(t *testing.T, l *harness.Env, _ string) { // the queue is Block: no job may be ahead
				l.Apply(held{cpu: "1"}.job("user"))
				l.WaitForPhase("Job", "user", "Running", "Dequeued")
			},
			reason: "Queued", says: []string{"QuotaExceeded", "root/team"}, normal: true},
		{name: "its quota group does not list the namespace", job: held{labels: "kube-queue/quota-name: nowhere"}.job,
			reason: "Queued", says: []string{"QuotaNotAllowed", "nowhere"}},
		{name: "its queue is stopped", job: held{labels: "kube-queue/quota-name: stopped"}.job,
			before: func(_ *testing.T, l *harness.Env, _ string) { l.PatchQueue("root-stopped", `{"spec":{"stop":"Hold"}}`) },
			reason: "Queued", says: []string{"QueueStopped", "root-stopped", "administrator"}, normal: true},
		{name: "an admission check does not exist", job: held{labels: "kube-queue/quota-name: unknown"}.job,
			before: func(t *testing.T, l *harness.Env, _ string) {
				l.PatchQueue("root-unknown", `{"spec":{"admissionChecks":["forgotten"]}}`)
			},
			reason: "Queued", says: []string{"AdmissionCheckMissing", "forgotten", "administrator"}},
		{name: "nobody answers an admission check", job: held{labels: "kube-queue/quota-name: unanswered"}.job,
			before: func(t *testing.T, l *harness.Env, _ string) {
				l.ApplyAsIs("apiVersion: scheduling.x-k8s.io/v1alpha1\nkind: AdmissionCheck\nmetadata: {name: nobody}\nspec: {controllerName: example.com/nobody}\n")
				l.PatchQueue("root-unanswered", `{"spec":{"admissionChecks":["nobody"]}}`)
			},
			reason: "Queued", says: []string{"AdmissionCheckPending", "the controller that its AdmissionCheck names: nobody"}, normal: true},
		{name: "its priority is no number", job: held{annotations: "scheduling.x-k8s.io/priority: urgent"}.job,
			reason: "Queued", says: []string{"InvalidRequest", "annotation scheduling.x-k8s.io/priority must be an integer"}},
		{name: "its PriorityClass does not exist", job: held{labels: "scheduling.x-k8s.io/priority-class: missing"}.job,
			reason: "Queued", says: []string{"InvalidRequest", `PriorityClass "missing", which is named by label scheduling.x-k8s.io/priority-class, does not exist`, "administrator"}},
		{name: "its annotation has another key", job: held{unmarked: true, annotations: `scheduling.x-k8s.io/suspended: "true"`}.job,
			reason: "NotQueued", says: []string{"annotation scheduling.x-k8s.io/suspended has no effect", "did you mean annotation scheduling.x-k8s.io/suspend?"}},
		{name: "its mark is a label", job: held{unmarked: true, labels: `scheduling.x-k8s.io/suspend: "true"`}.job,
			reason: "NotQueued", says: []string{"label scheduling.x-k8s.io/suspend has no effect", "set it as an annotation instead"}},
		{name: "its priority has another key", job: held{annotations: `kube-queue/priorty: "7"`}.job,
			reason: "KeyIgnored", says: []string{"annotation kube-queue/priorty has no effect", "did you mean annotation scheduling.x-k8s.io/priority?"}},
		{name: "the PriorityClass of its pods does not exist", job: held{class: "hihg"}.job,
			reason: "Queued", says: []string{"InvalidRequest", `PriorityClass "hihg", which is named by the pod template of pod set "main", does not exist`, "administrator"}},
		{name: "its minimum has no effect", job: held{annotations: `kube-queue/min-count: "worker=1"`, cpu: "100"}.tfJob,
			reason: "MinCountIgnored", says: []string{"kube-queue/min-count has no effect"}},
		{name: "its owner holds it", job: held{annotations: `scheduling.x-k8s.io/active: "false"`}.job,
			reason: "Queued", says: []string{"Inactive", "scheduling.x-k8s.io/active"}, normal: true},
		{name: "a quota refuses its unit", job: held{}.job,
			before: func(t *testing.T, l *harness.Env, _ string) {
				l.Apply("apiVersion: v1\nkind: ResourceQuota\nmetadata: {name: no-units}\nspec: {hard: {count/queueunits.scheduling.x-k8s.io: \"0\"}}\n")
				harness.Eventually(t, 30*time.Second, "the quota is counted", func() (bool, string) {
					quota, err := l.Kube.CoreV1().ResourceQuotas(l.Namespace).Get(t.Context(), "no-units", metav1.GetOptions{})
					harness.Must(t, err)
					return len(quota.Status.Hard) > 0, "it is not"
				})
				t.Cleanup(func() {
					harness.Must(t, l.Kube.CoreV1().ResourceQuotas(l.Namespace).Delete(context.Background(), "no-units", metav1.DeleteOptions{}))
				})
			},
			reason: "QueueUnitRefused", says: []string{"is forbidden", "no-units", "an administrator of the namespace"}},
		{name: "a policy refuses its release", job: held{labels: "refuse: release"}.job,
			before: refusing("release", "oldObject.spec.?suspend.orValue(false) && !object.spec.?suspend.orValue(false)"),
			reason: "ReleaseRefused", says: []string{"holds quota", "refuses to unsuspend", "the team of policies refuses to release jobs"}},
		{name: "a policy refuses its suspension", job: held{labels: "refuse: suspend"}.job,
			before: refusing("suspend", "!oldObject.spec.?suspend.orValue(false) && object.spec.?suspend.orValue(false)"),
			cause: func(t *testing.T, l *harness.Env, name string) {
				l.WaitForPhase("Job", name, "Running")
				l.Patch(harness.Jobs, name, `{"metadata":{"annotations":{"scheduling.x-k8s.io/active":"false"}}}`)
			},
			reason: "SuspendRefused", says: []string{"must be suspended", "the team of policies refuses to suspend jobs"}},
		{name: "a finalizer keeps its unit", job: held{cpu: "100"}.job,
			cause: func(t *testing.T, l *harness.Env, name string) {
				units := l.Queue.SchedulingV1alpha1().QueueUnits(l.Namespace)
				unit := l.WaitForReason("Job", name, "ExceedsMaxQuota")
				patch := []byte(`{"metadata":{"finalizers":["example.com/keeps"]}}`)
				_, err := l.As(audit.Extensions).Resource(schedulingv1alpha1.SchemeGroupVersion.WithResource("queueunits")).Namespace(l.Namespace).
					Patch(t.Context(), unit.Name, types.MergePatchType, patch, metav1.PatchOptions{})
				harness.Must(t, err)
				t.Cleanup(func() {
					patch := []byte(`{"metadata":{"finalizers":null}}`)
					if _, err := units.Patch(context.Background(), unit.Name, types.MergePatchType, patch, metav1.PatchOptions{}); !apierrors.IsNotFound(err) {
						harness.Must(t, err)
					}
				})
				harness.Must(t, units.Delete(t.Context(), unit.Name, metav1.DeleteOptions{}))
			},
			reason: "Queued", says: []string{"is being deleted", "finalizers keep it: example.com/keeps", "ask whoever set them to remove them"}},
	}
}

// refusing installs a policy, and waits until it is in effect.
func refusing(name, condition string) func(*testing.T, *harness.Env, string) {
	return func(t *testing.T, l *harness.Env, _ string) {
		l.ApplyAsIs(refuser(name, condition))
		awaitRefusal(t, l, name, "team of policies")
	}
}

// awaitRefusal waits until updates of jobs with the label refuse=NAME are refused with these words.
func awaitRefusal(t *testing.T, l *harness.Env, name, words string) {
	t.Helper()
	probe := func(suspend bool) string {
		return held{unmarked: true, labels: "refuse: " + name, spec: fmt.Sprintf("suspend: %t,", suspend)}.job("probe-" + name)
	}
	l.Apply(probe(name == "release"))
	harness.Eventually(t, time.Minute, "the policy is in effect", func() (bool, string) {
		_, err := suite.KubectlWith(t.Context(), probe(name != "release"), "-n", l.Namespace, "apply", "--dry-run=server", "-f", "-")
		return err != nil && strings.Contains(err.Error(), words), fmt.Sprint(err)
	})
	l.Delete(harness.Jobs, "probe-"+name)
}

// create creates a job, and returns the time.
func create(l *harness.Env, manifest string) time.Time {
	began := time.Now()
	l.Create(manifest)
	return began
}

// groups are quota groups with Queues of their own.
func groups() (all []string) {
	for _, name := range []string{"team", "stopped", "unknown", "unanswered"} {
		all = append(all, fmt.Sprintf(`{name: %s, namespaces: [silence], max: {cpu: "4"}}`, name))
	}
	return all
}

// awaitWord waits for the expected event, and checks how long it took.
func awaitWord(t *testing.T, l *harness.Env, name string, s silence, since time.Time) {
	t.Helper()
	var found *corev1.Event
	harness.Eventually(t, 3*deadline, "an event says what holds "+name, func() (bool, string) {
		all := l.AllEvents(name)
		for i := range all {
			if all[i].Reason == s.reason && !slices.ContainsFunc(s.says, func(words string) bool { return !strings.Contains(all[i].Message, words) }) {
				found = &all[i]
				return true, ""
			}
		}
		var texts []string
		for i := range all {
			texts = append(texts, all[i].Reason+": "+all[i].Message)
		}
		return false, strings.Join(texts, "\n")
	})
	took := time.Since(since)
	if took > deadline {
		t.Errorf("the event came after %v", took)
	}
	if want := map[bool]string{true: "Normal", false: "Warning"}[s.normal]; found.Type != want {
		t.Errorf("the event is of type %s", found.Type)
	}
	t.Logf("after %v %s: %s", took.Round(10*time.Millisecond), found.Reason, found.Message)
}

func TestNoJobWaitsWithoutAWord(t *testing.T) {
	l := suite.Env(t, "silence")
	l.Allowed = []string{"early-pod", "write-budget", "held-after-end"} // jobs are marked late, and writes are refused on purpose
	controller := suite.Replica(t, harness.Controller, 1)
	controller.Start()
	suite.Program(t, harness.Extensions, "--enabled-extensions=tfjob", "--annotation-extensions=job,pytorchjob").Start()
	t.Cleanup(func() {
		ctx := context.Background()
		for _, name := range []string{"root-stopped", "root-unknown", "root-unanswered"} {
			_ = l.Queue.SchedulingV1alpha1().Queues(clustertest.Namespace).Delete(ctx, name, metav1.DeleteOptions{})
		}
		for _, name := range []string{"refuse-release", "refuse-suspend"} {
			_ = l.Kube.AdmissionregistrationV1().ValidatingAdmissionPolicies().Delete(ctx, name, metav1.DeleteOptions{})
			_ = l.Kube.AdmissionregistrationV1().ValidatingAdmissionPolicyBindings().Delete(ctx, name, metav1.DeleteOptions{})
		}
	})

	t.Run("there is no tree", func(t *testing.T) {
		l := l.For(t)
		began := create(l, held{}.job("no-tree"))
		awaitWord(t, l, "no-tree", silence{reason: "Queued", says: []string{"NoQuota", "ElasticQuotaTree", "administrator"}}, began)
		l.Delete(harness.Jobs, "no-tree")
	})
	l.TreeOf(groups()...)
	t.Run("no group lists the namespace", func(t *testing.T) {
		other := suite.Part(t, "elsewhere")
		began := create(other, held{}.job("lost"))
		awaitWord(t, other, "lost", silence{reason: "Queued", says: []string{"NoQuota", "elsewhere", "administrator"}}, began)
	})
	for i, s := range silences() {
		t.Run(s.name, func(t *testing.T) {
			l := l.For(t)
			name := fmt.Sprintf("job-%d", i)
			if s.before != nil {
				s.before(t, l, name)
			}
			began := create(l, s.job(name))
			if s.cause != nil {
				s.cause(t, l, name)
				began = time.Now()
			}
			awaitWord(t, l, name, s, began)
			for _, resource := range []schema.GroupVersionResource{harness.Jobs, harness.TFJobs, harness.RayJobs} {
				err := l.Dynamic.Resource(resource).Namespace(l.Namespace).DeleteCollection(t.Context(), metav1.DeleteOptions{
					PropagationPolicy: new(metav1.DeletePropagationBackground)}, metav1.ListOptions{})
				harness.Must(t, err)
			}
		})
	}
	t.Run("what was done is not what its last event requests", func(t *testing.T) { fixedInTime(t, l.For(t)) })
	t.Run("the pods of a released job have no node", func(t *testing.T) { withoutNode(t, l.For(t)) })
	t.Run("the pods of a released job are refused", func(t *testing.T) { withoutPods(t, l.For(t)) })
	t.Run("the webhook of a release does not answer", func(t *testing.T) { withoutWebhook(t, l.For(t)) })
	t.Run("the controller does not run", func(t *testing.T) { controllerIsDown(t, l.For(t), controller) })
}

// controllerIsDown kills the controller, and starts it again.
func controllerIsDown(t *testing.T, l *harness.Env, controller *harness.Replica) {
	l.Apply(held{cpu: "100"}.job("before"))
	l.WaitForReason("Job", "before", "ExceedsMaxQuota")
	controller.Kill()
	lease, err := l.Kube.CoordinationV1().Leases(clustertest.Namespace).Get(t.Context(), harness.Controller, metav1.GetOptions{})
	harness.Must(t, err)
	expires := lease.Spec.RenewTime.Add(time.Duration(*lease.Spec.LeaseDurationSeconds) * time.Second)
	// A job that is created shortly before the Lease expires is notified as soon as the Lease has expired.
	early := time.NewTimer(time.Until(expires.Add(-2 * time.Second)))
	defer early.Stop()
	<-early.C
	down := silence{reason: "ControllerDown", says: []string{"kube-queue-controller, which admits units, has not run since " + lease.Spec.RenewTime.UTC().Format(time.RFC3339),
		"an administrator must start Deployment kube-queue-controller"}}
	create(l, held{}.job("early"))
	awaitWord(t, l, "early", down, expires)
	began := create(l, held{}.job("new"))
	awaitWord(t, l, "new", down, began)
	// Jobs that already have an event about what they wait for are notified later, one by one.
	harness.Eventually(t, time.Minute, "the job before is notified", func() (bool, string) {
		return len(l.Events("before", "ControllerDown")) == 1, "it is not"
	})
	controller.Start()
	l.WaitForPhase("Job", "new", "Running")
	l.WaitForEvent("new", "Released")
	harness.Eventually(t, time.Minute, "the last event of the job before is what it waits for", func() (bool, string) {
		all := l.AllEvents("before")
		slices.SortFunc(all, func(a, b corev1.Event) int { return a.LastTimestamp.Compare(b.LastTimestamp.Time) })
		last := all[len(all)-1]
		return last.Reason == "Queued" && len(l.Events("before", "Queued")) == 2, last.Reason + ": " + last.Message
	})
}
