package reconciler

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	"kube-queue.dev/kube-queue/extensions/framework"
	"kube-queue.dev/kube-queue/extensions/framework/decision"
	"kube-queue.dev/kube-queue/extensions/job"
	"kube-queue.dev/kube-queue/extensions/jobset"
	"kube-queue.dev/kube-queue/extensions/mpijob"
	"kube-queue.dev/kube-queue/extensions/pytorchjob"
	"kube-queue.dev/kube-queue/extensions/raycluster"
	"kube-queue.dev/kube-queue/extensions/rayjob"
	"kube-queue.dev/kube-queue/extensions/sparkapplication"
	"kube-queue.dev/kube-queue/extensions/trainjob"
	"kube-queue.dev/kube-queue/extensions/workflow"
	"kube-queue.dev/kube-queue/test/require"
)

// deletion is an API server in which the job of a unit is gone. A list has pages of one object.
type deletion struct {
	t *testing.T
	// objects are in YAML, by the end of their path.
	objects map[string][]string
	// job is the UID of the job that has its name; empty if there is none.
	job types.UID
	// version is the resourceVersion of that job.
	version string
	// finalizers keep the job, which is being deleted.
	finalizers []string
	// fails is whether lists fail.
	fails   bool
	lists   int
	patches []string
	deleted int
}

func (d *deletion) answer(r *http.Request) any {
	resource := r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:]
	switch {
	case strings.Contains(r.URL.Path, "/queueunits/") && r.Method == http.MethodDelete:
		d.deleted++
		return metav1.Status{Status: metav1.StatusSuccess}
	case strings.HasSuffix(r.URL.Path, "/status") && r.Method == http.MethodPatch:
		var patch struct{ Status v1alpha1.QueueUnitStatus }
		if err := json.NewDecoder(r.Body).Decode(&patch); err != nil {
			d.t.Error(err)
		}
		text := string(patch.Status.Phase) + " " + string(patch.Status.Reason) + ": " + patch.Status.Message
		for _, condition := range patch.Status.Conditions {
			text += condition.Reason
		}
		d.patches = append(d.patches, text)
		return v1alpha1.QueueUnit{ObjectMeta: metav1.ObjectMeta{ResourceVersion: "9"}}
	case r.URL.Query().Get("limit") == "" && d.job != "": // not a list, but the job
		live := metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "a", UID: d.job, ResourceVersion: d.version, Finalizers: d.finalizers}}
		if len(d.finalizers) > 0 {
			live.DeletionTimestamp = new(metav1.NewTime(noon))
		}
		return live
	case r.URL.Query().Get("limit") == "":
		return apierrors.NewNotFound(schema.GroupResource{Resource: resource}, "a")
	case d.fails:
		return apierrors.NewForbidden(schema.GroupResource{Resource: resource}, "", nil)
	default:
		return d.list(r, resource)
	}
}

func (d *deletion) list(r *http.Request, resource string) metav1.PartialObjectMetadataList {
	d.lists++
	query := r.URL.Query()
	if resource == "pods" && query.Get("fieldSelector") != "status.phase!=Succeeded,status.phase!=Failed" {
		d.t.Errorf("pods that have ended are listed too: %s", r.URL)
	}
	selector, err := labels.Parse(query.Get("labelSelector"))
	if err != nil {
		d.t.Error(err)
	}
	name, isNamed := strings.CutPrefix(query.Get("fieldSelector"), "metadata.name=")
	var found []metav1.PartialObjectMetadata
	for _, text := range d.objects[resource] {
		var o metav1.PartialObjectMetadata
		require.NoError(d.t, yaml.UnmarshalStrict([]byte(text), &o.ObjectMeta))
		if selector.Matches(labels.Set(o.Labels)) && (!isNamed || o.Name == name) {
			found = append(found, o)
		}
	}
	page := metav1.PartialObjectMetadataList{TypeMeta: metav1.TypeMeta{APIVersion: "meta.k8s.io/v1", Kind: "PartialObjectMetadataList"}}
	at := len(query.Get("continue"))
	if at < len(found) {
		page.Items = found[at : at+1]
	}
	if at+1 < len(found) {
		page.Continue = strings.Repeat("x", at+1)
	}
	return page
}

// reconciler returns a reconciler for the kind that sends its requests to this API server.
func (d *deletion) reconciler(adapter framework.Adapter) *reconciler {
	d.t.Helper()
	return frameworkOf(d.t, Options{Config: jsonServer(d.t, d.answer), Adapters: []framework.Adapter{adapter}}).reconcilers[0]
}

// unitOfGone returns a unit of the job "a" that is gone, with UID "job".
func unitOfGone(kind framework.Kind, phase v1alpha1.QueueUnitPhase) *v1alpha1.QueueUnit {
	apiVersion, name := kind.ToAPIVersionAndKind()
	return &v1alpha1.QueueUnit{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "unit", UID: "unit", ResourceVersion: "5"},
		Spec:   v1alpha1.QueueUnitSpec{ConsumerRef: v1alpha1.ConsumerReference{APIVersion: apiVersion, Kind: name, Name: "a", UID: "job"}},
		Status: v1alpha1.QueueUnitStatus{Phase: phase}}
}

// check checks the unit at a time when it is due.
func (d *deletion) check(r *reconciler, unit *v1alpha1.QueueUnit, now time.Time) (time.Duration, error) {
	r.memory.look.set(unit.UID, now)
	return r.clear(d.t.Context(), []*v1alpha1.QueueUnit{unit}, now)
}

func TestWhatIsLeftOfAJobThatIsGone(t *testing.T) {
	const of = ", ownerReferences: [{uid: %s, controller: true}]}"
	by := func(object, controller string) string {
		return strings.TrimSuffix(object, "}") + strings.Replace(of, "%s", controller, 1)
	}
	torch, ray, cluster := `{name: p, labels: {training.kubeflow.org/job-name: a}}`, `{name: r, labels: {ray.io/originated-from-cr-name: a}}`, `{name: p, labels: {ray.io/cluster: a}}`
	set, train := `{name: p, labels: {jobset.sigs.k8s.io/jobset-uid: job}}`, `{name: p, labels: {jobset.sigs.k8s.io/jobset-name: a}}`
	other := `{name: o, labels: {training.kubeflow.org/job-name: b}}`
	for _, c := range []struct {
		name     string
		adapter  framework.Adapter
		resource string
		objects  []string
		want     string
	}{
		{"nothing", job.New(), "pods", nil, ""},
		{"a pod of a Job", job.New(), "pods", []string{`{name: p, labels: {batch.kubernetes.io/controller-uid: job}}`}, "Pod p"},
		{"a pod of another Job of the name", job.New(), "pods", []string{`{name: p, labels: {batch.kubernetes.io/controller-uid: other, batch.kubernetes.io/job-name: a}}`}, ""},
		{"a pod of a PyTorchJob", pytorchjob.New(), "pods", []string{other, torch}, "Pod p"},
		{"a pod that still names the job that is gone", pytorchjob.New(), "pods", []string{by(torch, "job")}, "Pod p"},
		{"a pod of another job of the name", pytorchjob.New(), "pods", []string{by(torch, "other")}, ""},
		{"a pod on a later page", pytorchjob.New(), "pods", []string{by(torch, "other"), by(torch, "other"), torch}, "Pod p"},
		{"a worker of an MPIJob", mpijob.V2beta1(), "pods", []string{torch}, "Pod p"},
		{"a driver", sparkapplication.New(), "pods", []string{`{name: p, labels: {sparkoperator.k8s.io/app-name: a}}`}, "Pod p"},
		{"a pod of a Workflow", workflow.New(), "pods", []string{`{name: p, labels: {workflows.argoproj.io/workflow: a}}`}, "Pod p"},
		{"a pod of a RayCluster", raycluster.New(), "pods", []string{cluster}, "Pod p"},
		{"a pod of another RayCluster of the name", raycluster.New(), "pods", []string{by(cluster, "other")}, ""},
		{"the RayCluster of a RayJob", rayjob.New(), "rayclusters", []string{ray}, "RayCluster r"},
		{"the RayCluster of another RayJob of the name", rayjob.New(), "rayclusters", []string{by(ray, "other")}, ""},
		{"a pod of a Job of a JobSet", jobset.New(), "pods", []string{by(set, "between")}, "Pod p"},
		{"a pod of the JobSet of a TrainJob", trainjob.New(), "jobsets", []string{`{name: b}`, `{name: a}`}, "Pod p"},
		{"a pod of the JobSet of another TrainJob of the name", trainjob.New(), "jobsets", []string{`{name: a, ownerReferences: [{uid: other, controller: true}]}`}, ""},
		{"a pod without its JobSet", trainjob.New(), "jobsets", nil, ""},
		{"a pod that is being deleted", pytorchjob.New(), "pods", []string{`{name: p, labels: {training.kubeflow.org/job-name: a}, deletionGracePeriodSeconds: 30, deletionTimestamp: "2026-01-02T11:59:31Z"}`}, "Pod p"},
		{"a pod on a lost node", pytorchjob.New(), "pods", []string{`{name: p, labels: {training.kubeflow.org/job-name: a}, deletionGracePeriodSeconds: 30, deletionTimestamp: "2026-01-02T11:59:30Z"}`}, ""},
		// The API server computes such a time too.
		{"a pod whose grace period overflows", pytorchjob.New(), "pods", []string{`{name: p, labels: {training.kubeflow.org/job-name: a}, deletionGracePeriodSeconds: 10000000000, deletionTimestamp: "1758-01-02T11:59:30Z"}`}, "Pod p"},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := &deletion{t: t, objects: map[string][]string{c.resource: c.objects}}
			if c.resource == "jobsets" {
				d.objects["pods"] = []string{by(train, "between")}
			}
			unit := unitOfGone(c.adapter.Kind(), v1alpha1.PhaseRunning)
			after, err := d.check(d.reconciler(c.adapter), unit, noon)
			require.NoError(t, err)
			if c.want == "" {
				if d.deleted != 1 || len(d.patches) > 0 {
					t.Errorf("the unit is deleted %d times, and patched: %q", d.deleted, d.patches)
				}
				return
			}
			want := "Running PodsRemain: the job is gone, but what is left of it, such as " + c.want + ", keeps the quota until it ends or is deleted"
			if d.deleted > 0 || len(d.patches) != 1 || d.patches[0] != want || after != leftAgain {
				t.Errorf("the unit is deleted %d times, and patched: %q; it is checked again in %s", d.deleted, d.patches, after)
			}
		})
	}
}

// A lagging cache may not have the job of a unit yet.
func TestAJobIsGoneOnlyIfTheAPIServerSaysSo(t *testing.T) {
	for uid, deleted := range map[types.UID]int{"job": 0, "another-of-its-name": 1} {
		d := &deletion{t: t, job: uid}
		after, err := d.check(d.reconciler(job.New()), unitOfGone(job.New().Kind(), v1alpha1.PhaseRunning), noon)
		if err != nil || d.deleted != deleted {
			t.Errorf("job with UID %s: the unit is deleted %d times, want %d; it is checked again in %s: %v", uid, d.deleted, deleted, after, err)
		}
	}
}

func TestAUnitThatIsKeptIsWrittenOnceAndCheckedEvery10Seconds(t *testing.T) {
	d := &deletion{t: t, objects: map[string][]string{"pods": {`{name: p, labels: {batch.kubernetes.io/controller-uid: job}}`}}}
	r, unit := d.reconciler(job.New()), unitOfGone(job.New().Kind(), v1alpha1.PhaseDequeued)
	check := func(after time.Duration) {
		t.Helper()
		_, err := r.clear(t.Context(), []*v1alpha1.QueueUnit{unit}, noon.Add(after))
		require.NoError(t, err)
	}
	check(0)
	check(collectorGrace)
	unit.Status.Phase, unit.Status.Reason = v1alpha1.PhaseRunning, wellknown.ReasonPodsRemain
	check(collectorGrace + leftAgain/2) // another event
	check(collectorGrace + leftAgain)
	if d.lists != 2 || len(d.patches) != 1 {
		t.Errorf("%d lists, patches %q", d.lists, d.patches)
	}
	d.objects = nil
	check(collectorGrace + 2*leftAgain)
	if d.deleted != 1 {
		t.Error("it stays without pods")
	}
}

// The job is deleted, but a finalizer keeps it.
func TestAJobThatFinalizersKeepHoldsQuotaOnlyAsLongAsItHasPods(t *testing.T) {
	d := &deletion{t: t, job: "job", objects: map[string][]string{"pods": {`{name: p, labels: {batch.kubernetes.io/controller-uid: job}}`}}}
	r, unit := d.reconciler(job.New()), unitOfGone(job.New().Kind(), v1alpha1.PhaseRunning)
	kept := marked()
	kept.UID = "job"
	check := func(after time.Duration) {
		t.Helper()
		o := &observation{key: types.NamespacedName{Namespace: "n", Name: "a"}, job: kept, unit: unit, now: noon.Add(after)}
		_, err := r.act(t.Context(), o, decision.MarkFinished)
		require.NoError(t, err)
	}
	check(0) // the cache shows something that has not happened
	d.finalizers = []string{"example.com/keep", "example.com/backup"}
	check(leftAgain)
	check(leftAgain + time.Second)
	if d.lists != 1 || len(d.patches) > 0 {
		t.Errorf("%d lists, patches %q", d.lists, d.patches)
	}
	d.objects = nil
	check(2 * leftAgain)
	if want := "Failed : JobDeleted"; len(d.patches) != 1 || d.patches[0] != want {
		t.Errorf("the unit is patched: %q", d.patches)
	}
}

// Otherwise it would hold its quota until its finalizer is removed.
func TestAUnitThatAFinalizerKeepsEndsWithItsJob(t *testing.T) {
	d := &deletion{t: t}
	unit := unitOfGone(job.New().Kind(), v1alpha1.PhaseRunning)
	unit.DeletionTimestamp, unit.Finalizers = new(metav1.NewTime(noon)), []string{"example.com/keep"}
	r := d.reconciler(job.New())
	_, err := d.check(r, unit, noon)
	require.NoError(t, err)
	// Another job of the same name does not wait for the cache to show this.
	if wait := r.memory.behind(queuedKey, "3", "", "", noon); wait > 0 || r.memory.lookIn(unit.UID, noon, 0) != leftAgain {
		t.Errorf("another job waits %v", wait)
	}
	if want := "Failed : JobDeleted"; d.deleted > 0 || len(d.patches) != 1 || d.patches[0] != want {
		t.Errorf("the unit is deleted %d times, and patched: %q", d.deleted, d.patches)
	}
}

// A quota on the number of units may be full, or it may be unknown what is left of the former job.
func TestAJobAndTheUnitOfAFormerJobOfItsNameDoNotBlockEachOther(t *testing.T) {
	own := waitingUnit("")
	own.Status.Phase = v1alpha1.PhaseDequeued
	for name, c := range map[string]struct {
		unit              *v1alpha1.QueueUnit
		job               types.UID
		deleted, released int
	}{
		"no unit can be created":                    {nil, "", 1, 0},
		"what is left of the former cannot be read": {own, "j", 0, 1},
	} {
		d, said := &deletion{t: t, job: c.job, fails: true}, &spoken{}
		r, former := d.reconciler(job.New()), unitOfGone(job.New().Kind(), v1alpha1.PhaseSucceeded)
		r.Events = said
		cached(t, r.cached, marked())
		if c.unit != nil {
			former.Status.Phase = v1alpha1.PhaseRunning
			cached(t, r.units, c.unit)
		}
		cached(t, r.units, former)
		r.memory.look.set(former.UID, noon)
		turn := r.arrivals.Enter()
		_, err := r.reconcile(t.Context(), turn, queuedKey, noon)
		turn.End()
		if released := len(said.written); err == nil || d.deleted != c.deleted || released != c.released {
			t.Errorf("%s: %d units are deleted, and %d jobs released (%v)", name, d.deleted, released, err)
		}
	}
}

// A lagging cache shows a running job as it was before its release: suspended, without pods.
func TestACacheOfJobsThatLagsDoesNotFreeTheQuotaOfARunningJob(t *testing.T) {
	d := &deletion{t: t, job: "job", version: "4"}
	r := d.reconciler(job.New())
	for _, c := range []struct {
		cached string
		freed  int
	}{{"3", 0}, {"4", 1}} {
		suspended := marked()
		suspended.UID, suspended.ResourceVersion = "job", c.cached
		o := &observation{key: queuedKey, job: suspended, unit: unitOfGone(job.New().Kind(), v1alpha1.PhaseRunning), now: noon}
		_, err := r.act(t.Context(), o, decision.MarkSuspendedByUser)
		require.NoError(t, err)
		if len(d.patches) != c.freed {
			t.Errorf("with version %s in the cache the unit is patched: %q", c.cached, d.patches)
		}
	}
}

// A cache of units that lags shows the unit of a released job as it was before.
func TestAJobIsSuspendedAgainUnlessItWasReleased(t *testing.T) {
	for _, c := range []struct {
		phase   v1alpha1.QueueUnitPhase
		evicted wellknown.Reason
		want    string
	}{
		{v1alpha1.PhaseEnqueued, "", "suspended, resumed: "},
		{v1alpha1.PhaseRunning, "", ""},
		{v1alpha1.PhaseRunning, "Preempted", ""},
		{v1alpha1.PhaseRunning, wellknown.ReasonStopped, "suspended, resumed: "},
		{v1alpha1.PhaseRunning, wellknown.ReasonSuspendedByUser, "suspended, resumed: true"},
	} {
		got, live := "", unitOfGone(job.New().Kind(), c.phase)
		live.APIVersion, live.Kind = v1alpha1.SchemeGroupVersion.String(), "QueueUnit"
		if c.evicted != "" {
			live.Status.Conditions = []metav1.Condition{{Type: wellknown.ConditionEvicted, Status: metav1.ConditionTrue, Reason: string(c.evicted)}}
		}
		r := frameworkOf(t, Options{Adapters: []framework.Adapter{job.New()}, Config: jsonServer(t, func(req *http.Request) any {
			if req.Method != http.MethodPatch {
				return live
			}
			var sent metav1.PartialObjectMetadata
			if err := json.NewDecoder(req.Body).Decode(&sent); err != nil {
				t.Error(err)
			}
			got = "suspended, resumed: " + sent.Annotations[wellknown.ResumedAnnotation]
			return sent
		})}).reconcilers[0]
		done, err := r.act(t.Context(), &observation{key: queuedKey, job: marked(), unit: live, now: noon}, decision.HoldAgain)
		if got != c.want || done != (c.want != "") || err != nil {
			t.Errorf("%s, evicted %q: the job is %q, want %q (%v)", c.phase, c.evicted, got, c.want, err)
		}
	}
}

func TestAUnitWithoutQuotaIsDeletedWhateverIsLeft(t *testing.T) {
	d := &deletion{t: t, fails: true}
	r := d.reconciler(job.New())
	for _, phase := range []v1alpha1.QueueUnitPhase{"", v1alpha1.PhaseEnqueued, v1alpha1.PhaseBackoff, v1alpha1.PhaseSucceeded, v1alpha1.PhaseFailed} {
		d.deleted = 0
		if _, err := d.check(r, unitOfGone(job.New().Kind(), phase), noon); err != nil || d.deleted != 1 {
			t.Errorf("phase %q: deleted %d times, %v", phase, d.deleted, err)
		}
	}
}

func TestAUnitIsNotDeletedWhileNobodyKnowsWhatIsLeft(t *testing.T) {
	for _, adapter := range []framework.Adapter{job.New(), rayjob.New(), trainjob.New()} {
		d := &deletion{t: t, fails: true}
		unit := unitOfGone(adapter.Kind(), v1alpha1.PhaseRunning)
		unit.UID = types.UID(adapter.Kind().Name)
		if _, err := d.check(d.reconciler(adapter), unit, noon); err == nil || d.deleted > 0 {
			t.Errorf("%s: deleted %d times, %v", adapter.Kind().Kind, d.deleted, err)
		}
	}
}

func TestNoPodHasALabelThatIsTooLong(t *testing.T) {
	d := &deletion{t: t, fails: true}
	unit := unitOfGone(pytorchjob.New().Kind(), v1alpha1.PhaseRunning)
	unit.Spec.ConsumerRef.Name = strings.Repeat("b", 100)
	if _, err := d.check(d.reconciler(pytorchjob.New()), unit, noon); err != nil || d.deleted != 1 {
		t.Errorf("deleted %d times, %v", d.deleted, err)
	}
}

// No event reports that a pod on a lost node no longer counts, but another pod can pass the gate in its place.
func TestAJobThatGrowsIsCheckedAgainWhenAGracePeriodIsOver(t *testing.T) {
	now := time.Unix(1000, 0)
	pod := func(deleted *metav1.Time, grace int64) decision.GrowingPod {
		return decision.GrowingPod{Pod: &corev1.Pod{ObjectMeta: metav1.ObjectMeta{DeletionTimestamp: deleted, DeletionGracePeriodSeconds: &grace}}}
	}
	deleted := metav1.NewTime(now.Add(-10 * time.Second))
	pods := []decision.GrowingPod{pod(nil, 1), pod(&deleted, 60), pod(&deleted, 30)}
	if again := firstGraceOver(pods, now); again != 20*time.Second {
		t.Errorf("it is checked again in %v", again)
	}
	if again := firstGraceOver(pods[:1], now); again != 0 {
		t.Errorf("without a pod that is being deleted, it is checked again in %v", again)
	}
}
