package admission

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	v1alpha1 "kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
)

func unit(name, apiVersion, kind string) *v1alpha1.QueueUnit {
	return &v1alpha1.QueueUnit{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: v1alpha1.QueueUnitSpec{
			ConsumerRef: v1alpha1.ConsumerReference{APIVersion: apiVersion, Kind: kind, Name: name},
			Resource:    corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")},
			PodSets:     []v1alpha1.PodSet{{Name: "main", Count: 1, Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}}},
		},
	}
}

// makeUnit creates a unit, as job-extensions does.
func makeUnit(t *testing.T, who map[string]*rest.Config, ns string, u *v1alpha1.QueueUnit) {
	t.Helper()
	_, err := unitsAs(t, who["job-extensions"], ns).Create(t.Context(), u, metav1.CreateOptions{})
	must(t, err)
}

// actors are the users that work with the units of a namespace.
func actors(t *testing.T, ns string) map[string]*rest.Config {
	return map[string]*rest.Config{
		"editor":         person(t, ns, "kube-queue-editor"),
		"administrator":  cluster.Config(),
		"job-extensions": program(t, "job-extensions"),
		"controller":     program(t, "kube-queue-controller"),
	}
}

func TestOnlyJobExtensionsMakesTheUnitOfAServedKind(t *testing.T) {
	ns := namespace(t)
	who := actors(t, ns)
	type servedOrNot struct {
		apiVersion, kind string
		served           bool
	}
	all := []servedOrNot{
		{"ray.io/v1", "RayService", false},
		{"argoproj.io/v1alpha1", "CronWorkflow", false},
		{"batch/v1", "CronJob", false},
		{"example.com/v1", "Job", false},
		{"v1", "Pod", false},
		{"Job", "Job", false},
	}
	for _, kind := range heldKinds(t) {
		all = append(all, servedOrNot{kind.resource.GroupVersion().String(), kind.Kind.Kind, true})
	}
	for _, kind := range all {
		t.Run(kind.apiVersion+" "+kind.kind, func(t *testing.T) {
			for actor, config := range who {
				want := ""
				switch {
				case actor == "controller":
					want = "cannot create resource"
				case kind.served && actor != "job-extensions":
					want = "only job-extensions creates the QueueUnit of a " + kind.kind
				}
				_, err := unitsAs(t, config, ns).Create(t.Context(), unit("new", kind.apiVersion, kind.kind), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
				t.Log(actor)
				wantError(t, err, want)
			}
		})
	}
}

func TestAnInvalidUnitIsRefused(t *testing.T) {
	ns := namespace(t)
	negative := corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("-1Mi")}
	for name, test := range map[string]struct {
		change func(*v1alpha1.QueueUnit)
		says   string
	}{
		"one without a total":        {func(u *v1alpha1.QueueUnit) { u.Spec.Resource, u.Spec.PodSets = nil, nil }, ""},
		"one of its own namespace":   {func(u *v1alpha1.QueueUnit) { u.Spec.ConsumerRef.Namespace = ns }, ""},
		"one of another namespace":   {func(u *v1alpha1.QueueUnit) { u.Spec.ConsumerRef.Namespace = "other" }, "must be empty or " + ns},
		"a negative total":           {func(u *v1alpha1.QueueUnit) { u.Spec.Resource = negative }, "must be 0 or more"},
		"a negative request":         {func(u *v1alpha1.QueueUnit) { u.Spec.PodSets[0].Requests = negative }, "must be 0 or more"},
		"a negative limit":           {func(u *v1alpha1.QueueUnit) { u.Spec.PodSets[0].Limits = negative }, "must be 0 or more"},
		"a negative count":           {func(u *v1alpha1.QueueUnit) { u.Spec.PodSets[0].Count = -1 }, "spec.podSets[0].count"},
		"minCount above count":       {func(u *v1alpha1.QueueUnit) { u.Spec.PodSets[0].MinCount = ptr.To[int32](2) }, "minCount must not be greater than count"},
		"two pod sets of one name":   {func(u *v1alpha1.QueueUnit) { u.Spec.PodSets = append(u.Spec.PodSets, u.Spec.PodSets[0]) }, "Duplicate value"},
		"no kind":                    {func(u *v1alpha1.QueueUnit) { u.Spec.ConsumerRef.Kind = "" }, "spec.consumerRef.kind"},
		"a run of no seconds":        {func(u *v1alpha1.QueueUnit) { u.Spec.MaximumExecutionTimeSeconds = ptr.To[int32](0) }, "maximumExecutionTimeSeconds"},
		"more than 256 pod sets":     {func(u *v1alpha1.QueueUnit) { u.Spec.PodSets = podSets(257) }, "must have at most 256 items"},
		"as many as there may be":    {func(u *v1alpha1.QueueUnit) { u.Spec.PodSets = podSets(256) }, ""},
		"a priority below that of 0": {func(u *v1alpha1.QueueUnit) { u.Spec.Priority = -5 }, ""},
		"a scope that is not theirs": {func(u *v1alpha1.QueueUnit) {
			u.Spec.PodSets[0].QuotaScopes = []corev1.ResourceQuotaScope{corev1.ResourceQuotaScopePriorityClass}
		}, "spec.podSets[0].quotaScopes[0]"},
		"endless names": {func(u *v1alpha1.QueueUnit) {
			u.Spec.PodSets[0].Unset = map[corev1.ResourceName]string{corev1.ResourceLimitsCPU: strings.Repeat("x", 257)}
		}, "each list of container names must be at most 256 characters long"},
	} {
		t.Run(name, func(t *testing.T) {
			u := unit("new", "example.com/v1", "Thing")
			test.change(u)
			_, err := unitsAs(t, cluster.Config(), ns).Create(t.Context(), u, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
			wantError(t, err, test.says)
		})
	}
}

// Raw JSON, because the Go types cannot represent these values.
func TestAUnitThatCannotBeReadIsRefused(t *testing.T) {
	ns := namespace(t)
	units := objects(t).Resource(v1alpha1.SchemeGroupVersion.WithResource("queueunits")).Namespace(ns)
	create := func(t *testing.T, spec string) error {
		t.Helper()
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(`{apiVersion: scheduling.x-k8s.io/v1alpha1, kind: QueueUnit, metadata: {name: new},
			spec: {consumerRef: {apiVersion: example.com/v1, kind: Thing, name: t}, `+spec+`}}`), &object.Object); err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		_, err := units.Create(t.Context(), object, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		if took := time.Since(start); took > 5*time.Second {
			t.Errorf("the answer took %v", took)
		}
		return err
	}
	const not = "invalid quantity; write, for example, 2, 500m"
	for quantity, says := range map[string]string{
		`1`: "", `"1"`: "", `0`: "", `"500m"`: "", `"1.5"`: "", `"4Gi"`: "", `".5"`: "", `"1."`: "", `"+1"`: "", `"1E"`: "", `"1e3"`: "", `"1E-12"`: "",
		`"12345678901234567890"`: "", `"1n"`: "",
		`"1e1.5"`: not, `"1e-1000000000"`: not, `"1E+1000000000"`: not, `"1e100"`: not,
		`"` + strings.Repeat("9", 1000) + `"`: not,
		`"-1"`:                                "must be 0 or more", `"-1e1.5"`: "must be 0 or more",
		`""`: "should match", `"1e"`: "should match", `" 1"`: "should match",
	} {
		for place, spec := range map[string]string{
			"spec.resource.cpu":                 `resource: {memory: 1, cpu: %s}`,
			"spec.podSets worker: requests.cpu": `podSets: [{name: ps, count: 1}, {name: worker, count: 1, requests: {cpu: %s}}]`,
			"spec.podSets worker: limits.cpu":   `podSets: [{name: worker, count: 1, requests: {cpu: 1}, limits: {cpu: %s}}]`,
		} {
			t.Run(place+": "+quantity, func(t *testing.T) {
				err := create(t, fmt.Sprintf(spec, quantity))
				wantError(t, err, says)
				if says == not {
					wantError(t, err, place+": ")
				}
			})
		}
	}
	for name, test := range map[string]struct{ spec, says string }{
		"a time with microseconds":    {`submissionTime: "2026-01-01T12:00:00.123456+02:00"`, ""},
		"a time without microseconds": {`submissionTime: "2026-01-01T12:00:00Z"`, "must have microseconds"},
		"a time in small letters":     {`submissionTime: "2026-01-01t12:00:00.123456z"`, "must have microseconds"},
		"a priority beyond an int32":  {`priority: 9999999999`, "spec.priority"},
	} {
		t.Run(name, func(t *testing.T) { wantError(t, create(t, test.spec), test.says) })
	}
}

func TestAnUnreadableUnitIsRefusedAtTheMaximumSize(t *testing.T) {
	ns := namespace(t)
	u := unit("new", "example.com/v1", "Thing")
	u.APIVersion, u.Kind, u.Spec.PodSets = v1alpha1.SchemeGroupVersion.String(), "QueueUnit", podSets(256)
	object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(u)
	must(t, err)
	last := object["spec"].(map[string]any)["podSets"].([]any)[255].(map[string]any)
	last["limits"].(map[string]any)["example.com/resource-63"] = "1e1.5"
	_, err = objects(t).Resource(v1alpha1.SchemeGroupVersion.WithResource("queueunits")).Namespace(ns).
		Create(t.Context(), &unstructured.Unstructured{Object: object}, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	wantError(t, err, "spec.podSets set-255: limits.example.com/resource-63: 1e1.5")
}

// podSets returns pod sets of maximum size.
func podSets(n int) []v1alpha1.PodSet {
	list := corev1.ResourceList{}
	for i := range 64 {
		list[corev1.ResourceName(fmt.Sprintf("example.com/resource-%d", i))] = resource.MustParse("1")
	}
	unset := map[corev1.ResourceName]string{}
	for _, name := range []corev1.ResourceName{corev1.ResourceRequestsCPU, corev1.ResourceRequestsMemory, corev1.ResourceLimitsCPU, corev1.ResourceLimitsMemory} {
		unset[name] = strings.Repeat("x", 256)
	}
	scopes := []corev1.ResourceQuotaScope{corev1.ResourceQuotaScopeBestEffort, corev1.ResourceQuotaScopeTerminating, corev1.ResourceQuotaScopeCrossNamespacePodAffinity}
	var sets []v1alpha1.PodSet
	for i := range n {
		sets = append(sets, v1alpha1.PodSet{Name: fmt.Sprint("set-", i), Count: 1, Requests: list, Limits: list, QuotaScopes: scopes, Unset: unset})
	}
	return sets
}

func TestWhoMayChangeWhatOfAUnit(t *testing.T) {
	ns := namespace(t)
	who := actors(t, ns)
	extensions := unitsAs(t, who["job-extensions"], ns)
	for name, kind := range map[string]string{"of-a-job": "Job", "by-hand": "Thing"} {
		_, err := extensions.Create(t.Context(), unit(name, "batch/v1", kind), metav1.CreateOptions{})
		must(t, err)
	}
	const (
		spec       = `{"spec": {"priority": 7}}`
		ref        = `{"spec": {"consumerRef": {"name": "another"}}}`
		unreadable = `{"spec": {"resource": {"cpu": "1e1.5"}}}`
		slow       = `{"spec": {"podSets": [{"name": "main", "count": 1, "limits": {"memory": "1e-1000000000"}}]}}`
		// Adding defaults does not change the meaning of a spec.
		same     = `{"spec": {"priority": 0, "active": true, "preemptible": true}}`
		label    = `{"metadata": {"labels": {"a": "b"}}}`
		released = `{"status": {"phase": "Dequeued", "quota": "root/a", "queue": "root-a", "attempts": 1}}`
		running  = `{"status": {"phase": "Running"}}`
		failed   = `{"status": {"phase": "Failed", "reason": "Broken", "message": "it broke",
			"conditions": [{"type": "Finished", "status": "True", "reason": "Broken", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"}]}}`
		renewed = `{"status": {"renewTime": "2026-01-01T00:00:00.000000Z"}}`
		noPhase = `{"status": {"message": "hello"}}`
		quota   = `{"status": {"phase": "Failed", "quota": "root/b"}}`
		queue   = `{"status": {"phase": "Failed", "queue": "b"}}`
		again   = `{"status": {"phase": "Failed", "attempts": 0}}`
		ran     = `{"status": {"phase": "Failed", "startTime": "2026-01-01T00:00:00.000000Z"}}`
		requeue = `{"status": {"phase": "Failed", "requeueState": {"count": 1}}}`
		fewer   = `{"status": {"phase": "Failed", "admittedPodSets": [{"name": "main", "count": 1}]}}`
		check   = `{"status": {"phase": "Failed", "admissionChecks": [{"name": "a", "state": "Ready"}]}}`

		cannot   = "cannot patch resource"
		ofJob    = "only job-extensions changes the spec of the QueueUnit of a Job"
		byHand   = "the spec of a QueueUnit is immutable"
		status   = "only kube-queue writes the status of the QueueUnit of a Job"
		onlyEnds = "only phases Succeeded and Failed can be set"
		theRest  = "keep the other fields, which kube-queue sets"
	)
	for _, test := range []struct {
		actor, unit, patch, subresource, says string
	}{
		{"job-extensions", "of-a-job", spec, "", ""},
		{"job-extensions", "by-hand", spec, "", ""},
		{"job-extensions", "of-a-job", ref, "", "consumerRef is immutable"},
		{"job-extensions", "of-a-job", unreadable, "", "spec.resource.cpu: 1e1.5"},
		{"job-extensions", "by-hand", slow, "", "spec.podSets main: limits.memory: 1e-1000000000"},
		{"administrator", "of-a-job", spec, "", ofJob},
		{"administrator", "by-hand", spec, "", byHand},
		{"administrator", "by-hand", same, "", ""},
		{"administrator", "of-a-job", label, "", ""},
		{"editor", "of-a-job", spec, "", ofJob},
		{"editor", "by-hand", spec, "", byHand},
		{"editor", "by-hand", label, "", ""},
		{"controller", "of-a-job", spec, "", cannot},
		{"controller", "by-hand", label, "", cannot},

		{"controller", "of-a-job", released, "status", ""},
		{"controller", "by-hand", released, "status", ""},
		{"job-extensions", "of-a-job", running, "status", ""},
		{"job-extensions", "by-hand", running, "status", ""},
		{"administrator", "of-a-job", failed, "status", status},
		{"administrator", "by-hand", released, "status", onlyEnds},
		{"administrator", "by-hand", failed, "status", ""},
		{"editor", "of-a-job", failed, "status", status},
		{"editor", "by-hand", failed, "status", ""},
		{"editor", "by-hand", `{"status": {"phase": "Succeeded"}}`, "status", ""},
		{"editor", "by-hand", running, "status", onlyEnds},
		{"editor", "by-hand", `{"status": {"phase": "Dequeued"}}`, "status", onlyEnds},
		{"editor", "by-hand", `{"status": {"phase": null}}`, "status", onlyEnds},
		{"editor", "by-hand", `{"status": null}`, "status", onlyEnds},
		{"editor", "by-hand", renewed, "status", ""},
		{"administrator", "by-hand", renewed, "status", ""},
		{"editor", "of-a-job", renewed, "status", status},
		{"editor", "by-hand", `{"status": {"renewTime": "2026-01-01T00:00:00.000000Z", "phase": "Running"}}`, "status", onlyEnds},
		{"editor", "by-hand", `{"status": {"renewTime": "2026-01-01T00:00:00.000000Z", "attempts": 7}}`, "status", onlyEnds},
		{"editor", "by-hand", noPhase, "status", onlyEnds},
		{"editor", "by-hand", quota, "status", theRest},
		{"editor", "by-hand", queue, "status", theRest},
		{"editor", "by-hand", again, "status", theRest},
		{"editor", "by-hand", ran, "status", theRest},
		{"editor", "by-hand", requeue, "status", theRest},
		{"editor", "by-hand", fewer, "status", theRest},
		{"editor", "by-hand", check, "status", theRest},
	} {
		t.Run(fmt.Sprint(test.actor, " patches ", test.subresource, " of the unit ", test.unit, " with ", test.patch), func(t *testing.T) {
			prepare(t, who, ns, test.unit)
			var subresources []string
			if test.subresource != "" {
				subresources = []string{test.subresource}
			}
			_, err := unitsAs(t, who[test.actor], ns).Patch(t.Context(), test.unit, types.MergePatchType, []byte(test.patch),
				metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}}, subresources...)
			wantError(t, err, test.says)
		})
	}
}

// prepare releases a unit, as the controller does, so that it has a status.
func prepare(t *testing.T, who map[string]*rest.Config, ns, name string) {
	t.Helper()
	status := `{"status": {"phase": "Dequeued", "quota": "root/a", "queue": "root-a", "attempts": 1}}`
	patchStatus(t, who["controller"], ns, name, status)
}

// Roles decide who may delete units. A released job without its unit would lose the quota that it uses, and the next
// job would exceed the quota. So only job-extensions and the controllers that delete units may delete the unit of
// such a job.
func TestTheUnitOfAReleasedJobIsNotDeletedByHand(t *testing.T) {
	ns := namespace(t)
	who := actors(t, ns)
	who["viewer"] = person(t, ns, "kube-queue-viewer")
	for _, kind := range []string{"Job", "Thing"} {
		makeUnit(t, who, ns, unit("waiting-"+strings.ToLower(kind), "batch/v1", kind))
		makeUnit(t, who, ns, unit("released-"+strings.ToLower(kind), "batch/v1", kind))
		prepare(t, who, ns, "released-"+strings.ToLower(kind))
	}
	const account, root = "system:serviceaccount:kube-system:", "system:kube-controller-manager"
	const cannot, holds, instead = "cannot delete resource", "the QueueUnit holds quota for Job", "delete or suspend the Job"
	for actor, says := range map[string]string{
		"controller": cannot, "viewer": cannot, "editor": holds, "administrator": instead, "job-extensions": "",
		account + "default": holds, account + "job-controller": holds, account + "generic-garbage-collector": "", account + "namespace-controller": "", root: "",
	} {
		if who[actor] == nil {
			who[actor] = userWith(t, ns, "kube-queue-editor", actor)
		}
		for _, name := range []string{"waiting-job", "waiting-thing", "released-job", "released-thing"} {
			want := says
			if says != cannot && name != "released-job" {
				want = ""
			}
			for _, policy := range []metav1.DeletionPropagation{metav1.DeletePropagationBackground, metav1.DeletePropagationForeground, metav1.DeletePropagationOrphan} {
				t.Run(fmt.Sprint(actor, " deletes the unit ", name, " with policy ", policy), func(t *testing.T) {
					wantError(t, unitsAs(t, who[actor], ns).Delete(t.Context(), name, metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}, PropagationPolicy: &policy}), want)
				})
			}
		}
	}
	t.Run("the editor deletes that of a Workflow whose status says that it has ended", func(t *testing.T) {
		makeUnit(t, who, ns, unit("ended-workflow", "argoproj.io/v1alpha1", "Workflow"))
		prepare(t, who, ns, "ended-workflow")
		patchStatus(t, who["controller"], ns, "ended-workflow", `{"status": {"phase": "Succeeded"}}`)
		wantError(t, unitsAs(t, who["editor"], ns).Delete(t.Context(), "ended-workflow", metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}}), "the QueueUnit holds quota for Workflow")
	})
	t.Run("an administrator deletes it among others", func(t *testing.T) { // other users may not delete collections at all
		wantError(t, unitsAs(t, who["administrator"], ns).DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{FieldSelector: "metadata.name=released-job"}), instead)
	})
}

// The garbage collector also writes to units, which the policy must allow. test/integration/jobextensions tests that
// it orphans them.
func TestTheGarbageCollectorMayWriteToUnits(t *testing.T) {
	ns := namespace(t)
	who := actors(t, ns)
	units := unitsAs(t, who["job-extensions"], ns)
	jobs := core(t).BatchV1().Jobs(ns)
	for _, policy := range []metav1.DeletionPropagation{metav1.DeletePropagationBackground, metav1.DeletePropagationForeground} {
		t.Run("a unit that holds quota goes with its job: "+string(policy), func(t *testing.T) {
			name := "charged-" + strings.ToLower(string(policy))
			job, err := jobs.Create(t.Context(), &batchv1.Job{
				ObjectMeta: metav1.ObjectMeta{Name: name},
				Spec: batchv1.JobSpec{Suspend: ptr.To(true), Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
					RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "main", Image: "main"}},
				}}},
			}, metav1.CreateOptions{})
			must(t, err)
			u := unit(name, "batch/v1", "Job")
			u.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(job, batchv1.SchemeGroupVersion.WithKind("Job"))}
			makeUnit(t, who, ns, u)
			prepare(t, who, ns, name)
			must(t, jobs.Delete(t.Context(), name, metav1.DeleteOptions{PropagationPolicy: &policy}))
			eventually(t, "the unit is gone", func(ctx context.Context) error {
				if _, err := units.Get(ctx, name, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
					return fmt.Errorf("it is still there (error %v)", err)
				}
				return nil
			})
		})
	}
}
