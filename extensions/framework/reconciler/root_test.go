package reconciler

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	"kube-queue.dev/kube-queue/extensions/framework"
	"kube-queue.dev/kube-queue/extensions/framework/decision"
	"kube-queue.dev/kube-queue/extensions/job"
	"kube-queue.dev/kube-queue/extensions/rayjob"
	"kube-queue.dev/kube-queue/extensions/workflow"
	"kube-queue.dev/kube-queue/test/require"
)

func controlledBy(apiVersion, kind, name, uid string) []metav1.OwnerReference {
	return []metav1.OwnerReference{{APIVersion: apiVersion, Kind: kind, Name: name, UID: types.UID(uid), Controller: new(true)}}
}

// above returns a reconciler of Jobs. Its API server has these objects, by paths such as pods/step.
func above(t *testing.T, objects map[string]metav1.ObjectMeta) (*reconciler, *spoken) {
	t.Helper()
	config := jsonServer(t, func(req *http.Request) any {
		at := strings.Split(req.URL.Path, "/")
		resource, name := at[len(at)-1], strings.TrimPrefix(req.URL.Query().Get("fieldSelector"), "metadata.name=")
		if resource == "rayclusters" {
			return apierrors.NewForbidden(schema.GroupResource{Resource: resource}, name, nil)
		}
		list := metav1.PartialObjectMetadataList{TypeMeta: metav1.TypeMeta{APIVersion: "meta.k8s.io/v1", Kind: "PartialObjectMetadataList"}}
		if object, there := objects[resource+"/"+name]; there {
			list.Items = []metav1.PartialObjectMetadata{{TypeMeta: metav1.TypeMeta{APIVersion: "meta.k8s.io/v1", Kind: "PartialObjectMetadata"}, ObjectMeta: object}}
		}
		return list
	})
	said := &spoken{}
	f := frameworkOf(t, Options{Config: config, Adapters: []framework.Adapter{job.New(), workflow.New(), rayjob.New()}, Events: said})
	f.kueue.asked.Store(noon.UnixNano())
	return f.reconcilers[0], said
}

func (r *reconciler) hasUnit(t *testing.T, apiVersion, kind, name, uid string, phase v1alpha1.QueueUnitPhase) {
	t.Helper()
	cached(t, r.units, &v1alpha1.QueueUnit{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "unit-of-" + name},
		Spec:   v1alpha1.QueueUnitSpec{ConsumerRef: v1alpha1.ConsumerReference{APIVersion: apiVersion, Kind: kind, Name: name, UID: types.UID(uid)}},
		Status: v1alpha1.QueueUnitStatus{Phase: phase}})
}

// actions returns what is decided about a job without a unit at these times after noon.
func (r *reconciler) actions(t *testing.T, object *batchv1.Job, times ...time.Duration) (actions []decision.Action) {
	t.Helper()
	for _, at := range times {
		o, decided, err := r.decide(queuedKey, object, nil, noon.Add(at))
		require.NoError(t, err)
		r.explain(t.Context(), o, decided)
		actions = append(actions, decided.Action)
	}
	return actions
}

func TestAMarkedJobWithAControllerIsQueuedOrSaysWhyNot(t *testing.T) {
	const jobSets = "jobset.x-k8s.io/v1alpha2"
	for _, test := range []struct {
		name    string
		owner   []metav1.OwnerReference
		objects map[string]metav1.ObjectMeta
		unitOf  []string // of a controller
		runs    bool
		action  decision.Action
		says    string // after some seconds
	}{
		{name: "one of a ScaledJob", owner: controlledBy("keda.sh/v1alpha1", "ScaledJob", "s", "s"), action: decision.CreateUnit},
		{name: "a running one of a ScaledJob", owner: controlledBy("keda.sh/v1alpha1", "ScaledJob", "s", "s"), runs: true, action: decision.HoldLate},
		{name: "one of a step of a Workflow", owner: controlledBy("v1", "Pod", "step", "p"), unitOf: []string{"argoproj.io/v1alpha1", "Workflow", "w", "w"}, action: decision.CreateUnit},
		{name: "a part of a JobSet that is queued", owner: controlledBy(jobSets, "JobSet", "set", "s"), unitOf: []string{jobSets, "JobSet", "set", "s"}},
		{name: "a part of a JobSet that is a part of a TrainJob that is queued", owner: controlledBy(jobSets, "JobSet", "set", "s"),
			objects: map[string]metav1.ObjectMeta{"jobsets/set": {Name: "set", UID: "s", OwnerReferences: controlledBy("trainer.kubeflow.org/v1alpha1", "TrainJob", "t", "t")}},
			unitOf:  []string{"trainer.kubeflow.org/v1alpha1", "TrainJob", "t", "t"}},
		{name: "a part of a JobSet that is not queued", owner: controlledBy(jobSets, "JobSet", "set", "s"),
			objects: map[string]metav1.ObjectMeta{"jobsets/set": {Name: "set", UID: "s"}},
			says:    "NotQueued Not queued: the job is a part of JobSet set, whose operator starts and stops it"},
		{name: "one that names a JobSet that does not exist", owner: controlledBy(jobSets, "JobSet", "set", "s"), action: decision.CreateUnit},
		{name: "one that names an earlier JobSet", owner: controlledBy(jobSets, "JobSet", "set", "s"),
			objects: map[string]metav1.ObjectMeta{"jobsets/set": {Name: "set", UID: "another"}}, runs: true, action: decision.HoldLate},
		{name: "one that names the unit of an earlier JobSet", owner: controlledBy(jobSets, "JobSet", "set", "s"), unitOf: []string{jobSets, "JobSet", "set", "another"}, action: decision.CreateUnit},
		{name: "a part of a RayCluster that may not be read", owner: controlledBy("ray.io/v1", "RayCluster", "c", "c"),
			says: "NotQueued Not queued: the job is a part of RayCluster c"},
		{name: "a part that a policy queues itself", owner: controlledBy(jobSets, "JobSet", "set", "queued-itself"), unitOf: []string{jobSets, "JobSet", "set", "queued-itself"}, action: decision.CreateUnit},
	} {
		t.Run(test.name, func(t *testing.T) {
			r, said := above(t, test.objects)
			if of := test.unitOf; of != nil {
				r.hasUnit(t, of[0], of[1], of[2], of[3], v1alpha1.PhaseRunning)
			}
			object := marked()
			object.OwnerReferences, object.CreationTimestamp = test.owner, metav1.NewTime(noon)
			object.Annotations[wellknown.NotPartOfAnnotation] = "queued-itself"
			if test.runs {
				object.Spec.Suspend, object.Status = nil, batchv1.JobStatus{Active: 1, Ready: new(int32(1))}
			}
			// The controller is looked up in between.
			if got := r.actions(t, object, 0, time.Millisecond, 4*time.Second); got[2] != test.action {
				t.Errorf("decided is %q, not %q", got[2], test.action)
			}
			if says := said.says(); test.says == "" && says != "" || !strings.HasPrefix(says, test.says) {
				t.Errorf("the event is %q", says)
			}
		})
	}
}

// KubeRay copies the annotations of a RayJob to its RayCluster, which the garbage collector deletes soon after the job.
func TestAReleasedPartOfADeletedJobIsNotQueuedBeforeItIsDeleted(t *testing.T) {
	r, _ := above(t, nil)
	object := marked()
	object.Annotations[wellknown.ReleasedAnnotation] = "1"
	object.OwnerReferences = controlledBy("jobset.x-k8s.io/v1alpha2", "JobSet", "set", "s")
	object.Spec.Suspend, object.Status = nil, batchv1.JobStatus{Active: 1, Ready: new(int32(1))}
	got := r.actions(t, object, 0, 29*time.Second, 31*time.Second, 32*time.Second)
	if want := []decision.Action{"", "", "", decision.RestoreUnit}; !slices.Equal(got, want) {
		t.Errorf("decided is %q, not %q", got, want)
	}
}

// KubeRay copies the annotations of a RayJob. A RayCluster that its deletion orphans is charged to the RayJob's unit.
func TestAnOrphanGetsNoUnitWhileThatOfItsCreatorHoldsQuota(t *testing.T) {
	for phase, want := range map[v1alpha1.QueueUnitPhase]decision.Action{v1alpha1.PhaseRunning: decision.Nothing, v1alpha1.PhaseSucceeded: decision.RestoreUnit} {
		r, _ := above(t, nil)
		r.hasUnit(t, "ray.io/v1", "RayJob", "creator", "c", phase)
		orphan := jobWith(map[string]string{wellknown.ReleasedAnnotation: "1"})
		orphan.Labels = map[string]string{"ray.io/originated-from-cr-name": "creator"}
		orphan.Spec.Suspend, orphan.Status = nil, batchv1.JobStatus{Active: 1, Ready: new(int32(1))}
		if _, decided, err := r.decide(queuedKey, orphan, nil, noon); err != nil || decided.Action != want {
			t.Errorf("%s: decided is %+v %v, not %q", phase, decided, err, want)
		}
	}
}

// A job does not lose its unit because its controller is not cached yet, for example after a restart.
func TestAQueuedJobKeepsItsUnitUntilItsControllerIsSeen(t *testing.T) {
	r, _ := above(t, nil)
	object := marked()
	object.OwnerReferences = controlledBy("jobset.x-k8s.io/v1alpha2", "JobSet", "set", "s")
	unit := waitingUnit(wellknown.ReasonQuotaExceeded)
	if _, decided, err := r.decide(queuedKey, object, unit, noon); err != nil || decided.Action == decision.LeaveQueue {
		t.Errorf("decided is %+v %v", decided, err)
	}
	r.hasUnit(t, "jobset.x-k8s.io/v1alpha2", "JobSet", "set", "s", v1alpha1.PhaseEnqueued)
	if _, decided, err := r.decide(queuedKey, object, unit, noon); err != nil || decided.Action != decision.LeaveQueue {
		t.Errorf("decided is %+v %v", decided, err)
	}
}

// A Workflow that waits for a Job of its own step waits forever if that Job waits for the Workflow's quota.
func TestAJobThatWaitsForQuotaOfItsCreatorSaysSo(t *testing.T) {
	step := map[string]metav1.ObjectMeta{"pods/step": {Name: "step", UID: "p", OwnerReferences: controlledBy("argoproj.io/v1alpha1", "Workflow", "w", "w")}}
	for _, test := range []struct {
		name, says string
		owner      []metav1.OwnerReference
		phase      v1alpha1.QueueUnitPhase
	}{
		{"a pod of a step", "a step of Workflow w created the job, and Workflow w holds quota and might wait for the job", controlledBy("v1", "Pod", "step", "p"), v1alpha1.PhaseRunning},
		{"a Workflow itself", "a step of Workflow w created the job, and Workflow w holds quota", controlledBy("argoproj.io/v1alpha1", "Workflow", "w", "w"), v1alpha1.PhaseDequeued},
		{"a Workflow that holds none", "", controlledBy("argoproj.io/v1alpha1", "Workflow", "w", "w"), v1alpha1.PhaseEnqueued},
		{"another pod", "", controlledBy("v1", "Pod", "step", "another"), v1alpha1.PhaseRunning},
		{"a ScaledJob", "", controlledBy("keda.sh/v1alpha1", "ScaledJob", "s", "s"), v1alpha1.PhaseRunning},
		{"a RayJob whose operator is not listed", "if the operator of RayJob r created the job, ask an administrator to list the operator (chart value managedNamespaces.operators)",
			controlledBy("ray.io/v1", "RayJob", "r", "r"), v1alpha1.PhaseRunning},
	} {
		t.Run(test.name, func(t *testing.T) {
			r, said := above(t, step)
			r.hasUnit(t, "argoproj.io/v1alpha1", "Workflow", "w", "w", test.phase)
			r.hasUnit(t, "ray.io/v1", "RayJob", "r", "r", test.phase)
			object := marked()
			object.OwnerReferences, object.Annotations[wellknown.NotPartOfAnnotation] = test.owner, "r"
			r.explained(t, object, waitingUnit(wellknown.ReasonQuotaExceeded), noon)
			if got := said.says(); !strings.HasPrefix(got, "Queued QueueUnit") || strings.Contains(got, "holds quota") != (test.says != "") || !strings.Contains(got, test.says) {
				t.Errorf("the event is %q", got)
			}
		})
	}
}

func TestALateSuspensionSaysItsCause(t *testing.T) {
	unmarkedJob := jobWith(nil)
	unmarkedJob.Spec.Suspend = nil
	markedJob := unmarkedJob.DeepCopy()
	markedJob.Annotations = map[string]string{wellknown.SuspendAnnotation: "true"}
	releasedJob := unmarkedJob.DeepCopy()
	releasedJob.Annotations = map[string]string{wellknown.SuspendAnnotation: "false", wellknown.ReleasedAnnotation: "1"}
	for name, test := range map[string]struct {
		see  func(*reconciler)
		says string
		job  *batchv1.Job
	}{
		"it was created with the mark": {func(r *reconciler) { r.jobHandler().OnAdd(markedJob, false) }, "nothing suspended the job when it was created; the hold policy of its kind is missing", markedJob},
		"it was marked later": {func(r *reconciler) {
			r.jobHandler().OnAdd(unmarkedJob, false)
			r.jobHandler().OnUpdate(unmarkedJob, markedJob)
		}, "annotation scheduling.x-k8s.io/suspend was added after the job was created", markedJob},
		"its unit is gone": {func(*reconciler) {}, "it was released before and its QueueUnit is gone, or it is a copy of a released job", releasedJob},
	} {
		t.Run(name, func(t *testing.T) {
			r, said := explaining(t)
			test.see(r)
			o, decided, err := r.decide(queuedKey, test.job, nil, noon)
			if err != nil || decided.Action != decision.HoldLate {
				t.Fatal(decided, err)
			}
			r.recordSuspended(o, decided.Action)
			if len(said.repeated) != 1 || !strings.HasPrefix(said.repeated[0].Message, "Suspended late: "+test.says) {
				t.Errorf("the events are %v", said.repeated)
			}
		})
	}
}

// The annotation may come so soon that the cache never has the job without it.
func TestTheManagersOfAJobShowThatItWasMarkedAfterItsCreation(t *testing.T) {
	mark := `"f:metadata":{"f:annotations":{"f:scheduling.x-k8s.io/suspend":{}}}`
	for name, c := range map[string]struct {
		fields []string
		after  time.Duration
		want   bool
	}{
		"created with it":                       {[]string{`{` + mark + `,"f:spec":{}}`}, 0, false},
		"annotated by another client":           {[]string{`{"f:spec":{}}`, `{` + mark + `}`}, 0, true},
		"applied again, a second later":         {[]string{`{` + mark + `,"f:spec":{}}`}, time.Second, true},
		"nobody says who set it":                {nil, 0, false},
		"only its status was written by others": {[]string{`{` + mark + `,"f:spec":{}}`, `{"f:status":{}}`}, 0, false},
	} {
		job := jobWith(nil)
		job.CreationTimestamp = metav1.NewTime(noon)
		for _, raw := range c.fields {
			fields := &metav1.FieldsV1{}
			fields.SetRawString(raw)
			job.ManagedFields = append(job.ManagedFields, metav1.ManagedFieldsEntry{Operation: metav1.ManagedFieldsOperationUpdate, FieldsV1: fields, Time: new(metav1.NewTime(noon.Add(c.after)))})
		}
		if got := isMarkedAfterCreation(job); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
