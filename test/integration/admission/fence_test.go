package admission

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/utils/ptr"

	"kube-queue.dev/kube-queue/extensions/framework"
	"kube-queue.dev/kube-queue/extensions/registry"
)

func fenceTests(kind heldKind) []kindTest {
	tests := []kindTest{
		{"a waiting job of a managed namespace does not run", noWaitingJobRuns},
		{"a released job of a managed namespace does not grow", noReleasedJobGrows},
		{"pods are annotated only by a release", podsAreAnnotatedOnlyByARelease},
		{"no job of a managed namespace leaves its pods", noJobLeavesItsPods},
		{"an operator takes care of the parts of queued jobs", partsOfJobs},
		{"job-extensions leaves other jobs alone", otherJobsAreLeftAlone},
		{"a part of a job stays a part", partsStayParts},
		{"damage is not refused by the fence", damagedInManagedNamespace},
		{"the fence has few enough costs for large jobs", costsOfLargeJobs},
	}
	if kind.Kind.Kind == "JobSet" {
		tests = append(tests, kindTest{"the JobSet of a TrainJob is not deleted without it", noJobSetIsMadeAgain})
	}
	if kind.Elastic != nil {
		tests = append(tests, kindTest{"pods are counted only by a release", podsAreCountedOnlyByARelease})
	}
	if _, autoscaled := adapterOf(kind).(framework.Autoscaled); autoscaled {
		tests = append(tests, kindTest{"numbers of pods are lowered only in suspended jobs", podsAreLoweredOnlyWhileSuspended})
	}
	return tests
}

// adapterOf returns the adapter of a kind.
func adapterOf(kind heldKind) framework.Adapter {
	for _, adapter := range registry.All() {
		if adapter.Kind().Kind == kind.Kind.Kind {
			return adapter
		}
	}
	return nil
}

// podsAreLoweredOnlyWhileSuspended tests when job-extensions may undo what an autoscaler has added.
func podsAreLoweredOnlyWhileSuspended(t *testing.T, kind heldKind, _ dynamic.ResourceInterface) {
	f := fencedNamespace(t, kind)
	groups := kind.Fence.Groups[0]
	edit := func(change func(group map[string]any)) func(map[string]any) {
		return func(object map[string]any) {
			found, _, _ := unstructured.NestedFieldNoCopy(object, groups.Path...)
			switch found := found.(type) {
			case []any:
				change(found[0].(map[string]any))
			case map[string]any:
				change(found["Worker"].(map[string]any))
			}
		}
	}
	workers := func(n int64) func(map[string]any) {
		return edit(func(group map[string]any) { group[groups.Sizes[0]] = n })
	}
	job := kind.job(t)
	workers(3)(job.Object)
	create(t, f.tenant, job)
	dryRun := []string{metav1.DryRunAll}
	_, err := changeJob(t, f.queue, dryRun, workers(2))
	allowed(t, "a lower number in a suspended job", err)
	refused := func(changes ...func(map[string]any)) {
		t.Helper()
		_, err := changeJob(t, f.queue, dryRun, changes...)
		onlyOwn(t, err)
	}
	refused(workers(4))
	refused(workers(2), edit(func(group map[string]any) {
		group["template"].(map[string]any)["metadata"] = map[string]any{"labels": map[string]any{"a": "b"}}
	}))
	refused(workers(2), func(object map[string]any) { mergeText(t, object, kind.releaseText()) })
	kind.release(t, f.queue)
	refused(workers(2))
	refused(workers(2), func(object map[string]any) { mergeText(t, object, kind.suspend("true")) })
}

// fenced is a managed namespace with the users who work in it.
type fenced struct {
	namespace string
	// tenant may do everything with jobs. privileged may also bypass the queue. admin is a cluster administrator.
	// queue is job-extensions.
	tenant, privileged, admin, queue dynamic.ResourceInterface
}

// fencedNamespace creates a managed namespace.
func fencedNamespace(t *testing.T, kind heldKind) fenced {
	t.Helper()
	f := fenced{namespace: managedNamespace(t)}
	resource := kind.resource.Resource
	role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: "tenant"}, Rules: []rbacv1.PolicyRule{{
		APIGroups: []string{kind.Group}, Resources: []string{resource, resource + "/scale", resource + "/status"}, Verbs: []string{"*"}}}}
	_, err := core(t).RbacV1().Roles(f.namespace).Create(t.Context(), role, metav1.CreateOptions{})
	must(t, err)
	grant(t, f.namespace, "Role", role.Name, "tenant")
	grant(t, f.namespace, "Role", role.Name, "privileged")
	grant(t, f.namespace, "ClusterRole", "kube-queue-bypass", "privileged")
	f.tenant, f.privileged = f.as(t, kind, "tenant"), f.as(t, kind, "privileged")
	f.admin = objects(t).Resource(kind.resource).Namespace(f.namespace)
	queue, err := dynamic.NewForConfig(program(t, "job-extensions"))
	must(t, err)
	f.queue = queue.Resource(kind.resource).Namespace(f.namespace)
	return f
}

func (f fenced) as(t *testing.T, kind heldKind, user string) dynamic.ResourceInterface {
	t.Helper()
	client, err := dynamic.NewForConfig(cluster.ConfigAs(user))
	must(t, err)
	return client.Resource(kind.resource).Namespace(f.namespace)
}

// fenceSays begins each message of the fence.
const fenceSays = "namespace is managed by kube-queue: "

// refused checks that the fence refused a request, with advice.
func refused(t *testing.T, err error, says string) {
	t.Helper()
	switch {
	case err == nil:
		t.Errorf("not refused; want %q", says)
	case !apierrors.IsForbidden(err) && !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), fenceSays) || !strings.Contains(err.Error(), says):
		t.Errorf("refused with %v, want %q", err, says)
	}
}

func allowed(t *testing.T, what string, err error) {
	t.Helper()
	if err != nil {
		t.Errorf("%s: %v", what, err)
	}
}

const bypass = `{metadata: {annotations: {kube-queue/bypass: "true"}}}`

// noNewJobRuns tests that each new job of a managed namespace is queued or refused.
func noNewJobRuns(t *testing.T, kind heldKind, unmanaged dynamic.ResourceInterface) {
	f := fencedNamespace(t, kind)
	dryRun := metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}
	type test struct {
		name    string
		merged  []string
		refused string // if empty, it is held
	}
	tests := []test{
		{"unmarked", nil, ""},
		{"with null for every map", []string{`{metadata: {annotations: null, labels: null, ownerReferences: null}}`}, ""},
		{"with other annotations", []string{`{metadata: {annotations: {a: b}}}`}, ""},
		{"marked", []string{marked}, ""},
		{"suspended", []string{kind.suspend("true")}, ""},
		{"not suspended", []string{kind.suspend("false")}, ""},
		{"marked false", []string{`{metadata: {annotations: {scheduling.x-k8s.io/suspend: "false"}}}`, kind.suspend("false")}, ""},
		{"a copy of a released job", []string{`{metadata: {annotations: {scheduling.x-k8s.io/suspend: "false", kube-queue/released: "1"}}}`, kind.suspend("false")}, ""},
		{"with the annotation of managed namespaces", []string{`{metadata: {annotations: {kube-queue/managed: "false", kube-queue/not-part-of: x}}}`}, ""},
		{"with an owner that is no controller", []string{ownedBy("example.com/v1", "Thing", "false")}, ""},
		{"owned by a CronJob", []string{ownedBy("batch/v1", "CronJob", "true")}, ""},
		{"owned by a foreign CronJob", []string{ownedBy("example.com/v1", "CronJob", "true")}, ""},
		{"owned by a RayCronJob", []string{ownedBy("ray.io/v1", "RayCronJob", "true")}, ""},
		{"owned by a ConfigMap", []string{ownedBy("v1", "ConfigMap", "true")}, ""},
		{"owned by a JobSet", []string{ownedBy("jobset.x-k8s.io/v1alpha2", "JobSet", "true")}, ""},
		{"owned by a RayService", []string{ownedBy("ray.io/v1", "RayService", "true")}, ""},
		{"owned by a Trial of Katib", []string{ownedBy("kubeflow.org/v1beta1", "Trial", "true")}, ""},
		{"of another queue", []string{`{metadata: {labels: {kueue.x-k8s.io/queue-name: x}}}`}, "kueue.x-k8s.io/queue-name assigns the"},
		{"of another queue, with an empty name", []string{`{metadata: {labels: {kueue.x-k8s.io/queue-name: ""}}}`}, "kueue.x-k8s.io/queue-name assigns the"},
		{"with a bypass", []string{bypass}, `requires the verb "bypass"`},
		{"with an orphan finalizer", []string{`{metadata: {finalizers: [orphan]}}`}, "finalizer orphan would keep the pods"},
	}
	if kind.manager != "" {
		tests = append(tests,
			test{"of its controller by name", []string{kind.field("managedBy", kind.manager)}, ""},
			test{"of another controller", []string{kind.field("managedBy", "kueue.x-k8s.io/multikueue")}, "only kube-queue starts a"})
	}
	if kind.title == "Workflow" {
		tests = append(tests, test{"with a managedBy that Argo does not know", []string{`{spec: {managedBy: a, runPolicy: {managedBy: b}}}`}, ""})
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			for user, jobs := range map[string]dynamic.ResourceInterface{"tenant": f.tenant, "administrator": f.admin} {
				created, err := jobs.Create(t.Context(), kind.job(t, test.merged...), dryRun)
				switch {
				case user == "administrator" && (test.name == "with a bypass" || test.name == "owned by a JobSet" && kind.Native):
					allowed(t, "cluster-admin has every verb", err)
					kind.wantSuspended(t, created, false)
				case test.refused != "":
					refused(t, err, test.refused)
				case err != nil:
					t.Errorf("%s: %v", user, err)
				default:
					kind.wantHeld(t, created)
					wantQueued(t, created, true)
					if policy, _, _ := unstructured.NestedString(created.Object, "spec", "runPolicy", "cleanPodPolicy"); kind.hasRunPolicy() && policy != "Running" {
						t.Errorf("cleanPodPolicy %q", policy)
					}
					annotations := created.GetAnnotations()
					if _, copied := annotations["kube-queue/released"]; copied {
						t.Error("the annotation of another release was kept")
					}
					if owner := metav1.GetControllerOf(created); owner != nil && annotations["kube-queue/not-part-of"] != string(owner.UID) {
						t.Errorf("job-extensions would take it for a part of %s %s: %v", owner.Kind, owner.Name, annotations)
					}
				}
			}
			if test.refused == "" {
				created := create(t, unmanaged, kind.job(t, test.merged...), metav1.DryRunAll)
				if created.GetAnnotations()[managedNote] == "true" {
					t.Errorf("queued in a namespace that is not managed: %v", created.GetAnnotations())
				}
			}
		})
	}
	job, err := f.privileged.Create(t.Context(), kind.job(t, bypass), dryRun)
	allowed(t, "a bypass with the right to it", err)
	if err == nil {
		kind.wantSuspended(t, job, false)
	}
}

func noWaitingJobRuns(t *testing.T, kind heldKind, _ dynamic.ResourceInterface) {
	f := fencedNamespace(t, kind)
	held := create(t, f.tenant, kind.job(t))
	kind.wantSuspended(t, held, true)
	dryRun := metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}}
	for _, test := range []struct {
		name, patch, refused string // if refused is empty, it stays held
	}{
		{"unsuspended", kind.suspend("false"), ""},
		{"without its suspend field", kind.suspend("null"), ""},
		{"without its annotations", `{metadata: {annotations: null}}`, ""},
		{"without the annotation of managed namespaces", `{metadata: {annotations: {kube-queue/managed: null}}}`, ""},
		{"without its annotations and suspend field", `{metadata: {annotations: null}, ` + strings.TrimPrefix(kind.suspend("null"), "{"), ""},
		{"marked false", `{metadata: {annotations: {scheduling.x-k8s.io/suspend: "false"}}}`, `keeps the annotation scheduling.x-k8s.io/suspend "true"`},
		{"marked false and unsuspended", `{metadata: {annotations: {scheduling.x-k8s.io/suspend: "false"}}, ` + strings.TrimPrefix(kind.suspend("false"), "{"), `keeps the annotation`},
		{"given to another queue", `{metadata: {labels: {kueue.x-k8s.io/queue-name: x}}}`, "assigns the"},
		{"given to another queue and unsuspended", `{metadata: {labels: {kueue.x-k8s.io/queue-name: x}}, ` + strings.TrimPrefix(kind.suspend("false"), "{"), "assigns the"},
		{"given to a controller", ownedBy("v1", "ConfigMap", "true"), "owners of a"},
		{"with a bypass", bypass, `requires the verb "bypass"`},
		{"with a bypass and unsuspended", `{metadata: {annotations: {kube-queue/bypass: "true"}}, ` + strings.TrimPrefix(kind.suspend("false"), "{"), `requires the verb "bypass"`},
		{"with an orphan finalizer", `{metadata: {finalizers: [orphan]}}`, "finalizer orphan"},
		{"labelled", `{metadata: {labels: {a: b}}}`, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			patched, err := f.tenant.Patch(t.Context(), "held", types.MergePatchType, toJSON(t, test.patch), dryRun)
			if test.refused != "" {
				refused(t, err, test.refused)
				return
			}
			allowed(t, test.name, err)
			if err == nil {
				kind.wantSuspended(t, patched, true)
				wantQueued(t, patched, true)
			}
		})
	}
	t.Run("changed so that its operator would not suspend it", func(t *testing.T) { // it may still be stopping the pods
		unstoppable := map[string]string{}
		if kind.manager != "" {
			unstoppable[kind.field("managedBy", "kueue.x-k8s.io/multikueue")] = "no longer suspend it"
		}
		if kind.Kind.Kind == "RayJob" {
			unstoppable[`{spec: {clusterSelector: {a: b}}}`] = "no longer suspend it"
			unstoppable[`{spec: {ttlSecondsAfterFinished: -1}}`] = "the validity of"
		}
		for text, says := range unstoppable {
			if _, err := try(t, f.tenant, text, dryRun); !apierrors.IsInvalid(err) { // some are immutable anyway
				refused(t, err, says)
			}
		}
	})
	t.Run("replaced by its manifest", func(t *testing.T) {
		var replaced *unstructured.Unstructured
		eventually(t, "replaced", func(ctx context.Context) error { // the Job controller also writes
			now, err := f.tenant.Get(ctx, "held", metav1.GetOptions{})
			if err != nil {
				return err
			}
			again := kind.job(t)
			again.SetResourceVersion(now.GetResourceVersion())
			if kind.Native { // the API server adds a selector and labels, which are immutable
				again = now.DeepCopy()
				again.SetAnnotations(nil)
				unstructured.RemoveNestedField(again.Object, "spec", "suspend")
			}
			replaced, err = f.tenant.Update(ctx, again, metav1.UpdateOptions{DryRun: []string{metav1.DryRunAll}})
			return err
		})
		kind.wantSuspended(t, replaced, true)
		wantQueued(t, replaced, true)
	})
	t.Run("with the right to a bypass", func(t *testing.T) {
		patched, err := f.privileged.Patch(t.Context(), "held", types.MergePatchType,
			toJSON(t, `{metadata: {annotations: {kube-queue/bypass: "true", scheduling.x-k8s.io/suspend: "false"}}, `+strings.TrimPrefix(kind.suspend("false"), "{")), dryRun)
		allowed(t, "bypass", err)
		if err == nil {
			kind.wantSuspended(t, patched, false)
		}
	})
	t.Run("resumed after it was suspended by hand", func(t *testing.T) {
		kind.release(t, f.queue)
		suspended, err := f.tenant.Patch(t.Context(), "held", types.MergePatchType, toJSON(t, kind.suspend("true")), metav1.PatchOptions{})
		allowed(t, "suspend", err)
		kind.wantSuspended(t, suspended, true)
		resumed, err := f.tenant.Patch(t.Context(), "held", types.MergePatchType, toJSON(t, kind.suspend("false")), metav1.PatchOptions{})
		allowed(t, "resume", err)
		kind.wantSuspended(t, resumed, true)
		wantQueued(t, resumed, true)
		wantResumed(t, resumed, true)
	})
}

// change is a patch of a released job. A JSON patch is a list.
type change struct {
	name, patch string
	refused     bool
}

// changes are changes that users might make to a released job of the kind.
func changes(kind heldKind) []change {
	all := []change{
		{"a label", `{metadata: {labels: {a: b}}}`, false},
		{"an annotation", `{metadata: {annotations: {a: b}}}`, false},
		{"suspended by hand", kind.suspend("true"), false},
	}
	if !kind.Kind.Fence.Declared {
		all = append(all, change{"no annotation", `{metadata: {annotations: null}}`, false})
	}
	if kind.manager != "" {
		all = append(all, change{"another controller", kind.field("managedBy", "kueue.x-k8s.io/multikueue"), true})
	}
	replicas := func(field, added string) []change {
		at := func(value string) string { return nested([]string{"spec", field}, value) }
		return []change{
			{"more workers", at(`{Worker: {replicas: 90}}`), true},
			{"fewer workers", at(`{Worker: {replicas: 0}}`), false},
			{"larger workers", `[{op: add, path: /spec/` + field + `/Worker/template/spec/containers/0/resources, value: {requests: {cpu: "64"}}}]`, true},
			{"another role", at(`{` + added + `: {replicas: 1, template: {spec: {containers: [{name: tensorflow, image: i}]}}}}`), true},
		}
	}
	switch kind.Kind.Kind {
	case "Job":
		all = append(all,
			change{"more pods", `{spec: {parallelism: 80}}`, true},
			change{"fewer pods", `{spec: {parallelism: 0}}`, false},
			change{"a deadline", `{spec: {activeDeadlineSeconds: 100}}`, false})
	case "TFJob":
		all = append(all, replicas("tfReplicaSpecs", "PS")...)
	case "PyTorchJob":
		all = append(all, replicas("pytorchReplicaSpecs", "Other")...)
		all = append(all, change{"an elastic policy", `{spec: {elasticPolicy: {minReplicas: 1, maxReplicas: 90}}}`, true})
	case "XGBoostJob":
		all = append(all, replicas("xgbReplicaSpecs", "Other")...)
	case "PaddleJob":
		all = append(all, replicas("paddleReplicaSpecs", "Other")...)
	case "JAXJob":
		all = append(all, replicas("jaxReplicaSpecs", "Other")...)
	case "MPIJob":
		v2 := kind.resource.Version == "v2beta1" // its operator rejects more
		workers := replicas("mpiReplicaSpecs", "Other")
		workers[1].refused = v2
		all = append(append(all, workers...),
			change{"no launcher", `{spec: {mpiReplicaSpecs: {Launcher: null}}}`, true},
			change{"a launcher without a pod", `{spec: {mpiReplicaSpecs: {Launcher: {replicas: 0}}}}`, true},
			change{"a deadline", kind.field("activeDeadlineSeconds", "100"), false},
			change{"an invalid deadline", kind.field("activeDeadlineSeconds", "-1"), v2},
			change{"an invalid policy", kind.field("cleanPodPolicy", "x"), v2})
	case "RayCluster", "RayJob":
		cluster := "/spec"
		if kind.Kind.Kind == "RayJob" {
			cluster = "/spec/rayClusterSpec"
			all = append(all,
				change{"a cluster of others", `{spec: {clusterSelector: {a: b}}}`, true},
				change{"another environment", `{spec: {runtimeEnvYAML: "["}}`, true},
				change{"the unset environment", `{spec: {runtimeEnvYAML: ""}}`, false},
				change{"a time to live", `{spec: {ttlSecondsAfterFinished: 60, shutdownAfterJobFinishes: true}}`, false},
				change{"an invalid time to live", `{spec: {ttlSecondsAfterFinished: -1}}`, true},
				change{"a time to live without a shutdown", `{spec: {ttlSecondsAfterFinished: 60, shutdownAfterJobFinishes: false}}`, true},
				change{"invalid retries", `{spec: {backoffLimit: -1}}`, kind.resource.Version == "v1"})
		}
		group := cluster + "/workerGroupSpecs/0"
		all = append(all,
			change{"more workers", `[{op: add, path: ` + group + `/replicas, value: 90}, {op: add, path: ` + group + `/maxReplicas, value: 90}]`, true},
			change{"more workers at least", `[{op: add, path: ` + group + `/minReplicas, value: 90}, {op: add, path: ` + group + `/maxReplicas, value: 90}]`, true},
			change{"autoscaling", `[{op: add, path: ` + cluster + `/enableInTreeAutoscaling, value: true}]`, true},
			change{"larger workers", `[{op: add, path: ` + group + `/template/spec/containers/0/resources, value: {requests: {cpu: "64"}}}]`, true},
			change{"a larger head", `[{op: add, path: ` + cluster + `/headGroupSpec/template/spec/containers/0/resources, value: {requests: {cpu: "64"}}}]`, true},
			change{"another group", `[{op: copy, from: ` + group + `, path: ` + cluster + `/workerGroupSpecs/-}]`, true},
			change{"another version of Ray", `[{op: add, path: ` + cluster + `/rayVersion, value: "1"}]`, true},
			// v1alpha1 has no such fields.
			change{"authentication", `[{op: add, path: ` + cluster + `/authOptions, value: {mode: token}}]`, kind.resource.Version == "v1"},
			change{"a worker group that is resumed", `[{op: add, path: ` + group + `/suspend, value: false}]`, kind.resource.Version == "v1"},
			change{"more hosts", `[{op: add, path: ` + group + `/numOfHosts, value: 8}]`, kind.resource.Version == "v1"})
	case "SparkApplication":
		all = append(all,
			change{"more executors", `{spec: {executor: {instances: 90}}}`, true},
			change{"a larger driver", `{spec: {driver: {cores: 64}}}`, true},
			change{"dynamic allocation", `{spec: {dynamicAllocation: {enabled: true, maxExecutors: 90}}}`, true},
			change{"other settings", `{spec: {sparkConf: {spark.executor.instances: "90"}}}`, true},
			change{"a time to live", `{spec: {timeToLiveSeconds: 100}}`, false})
	case "JobSet":
		all = append(all,
			change{"more Jobs", `[{op: add, path: /spec/replicatedJobs/0/replicas, value: 90}]`, true},
			change{"more pods", `[{op: add, path: /spec/replicatedJobs/0/template/spec/parallelism, value: 90}]`, true},
			change{"a coordinator", `{spec: {coordinator: {replicatedJob: none}}}`, true})
	case "TrainJob":
		all = append(all, change{"more nodes", `{spec: {trainer: {numNodes: 90}}}`, true})
	case "Workflow":
		all = append(all,
			change{"what Argo adds when it writes the status", `[{op: add, path: /spec/arguments, value: {}}, {op: add, path: /spec/templates/0/inputs, value: {}}]`, false},
			change{"another template", `[{op: copy, from: /spec/templates/0, path: /spec/templates/-}]`, false},
			change{"a shutdown", `{spec: {shutdown: Terminate}}`, false})
	default:
		return nil
	}
	return all
}

// try patches the job held with a merge patch or, if the text is a list, a JSON patch.
func try(t *testing.T, jobs dynamic.ResourceInterface, text string, options metav1.PatchOptions, subresources ...string) (*unstructured.Unstructured, error) {
	t.Helper()
	how := types.MergePatchType
	if strings.HasPrefix(text, "[") {
		how = types.JSONPatchType
	}
	return jobs.Patch(t.Context(), "held", how, toJSON(t, text), options, subresources...)
}

func noReleasedJobGrows(t *testing.T, kind heldKind, _ dynamic.ResourceInterface) {
	f := fencedNamespace(t, kind)
	large := `{}`
	if kind.Native { // parallelism is the number of pods
		large = `{spec: {parallelism: 2, completions: null}}`
	}
	create(t, f.tenant, kind.job(t, large))
	kind.release(t, f.queue)
	all := changes(kind)
	if !kind.Kind.Fence.Declared && !slices.ContainsFunc(all, func(c change) bool { return c.refused }) {
		t.Fatalf("no test of how a %s grows", kind.Kind.Kind)
	}
	dryRun := metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}}
	for _, c := range all {
		t.Run(c.name, func(t *testing.T) {
			for user, jobs := range map[string]dynamic.ResourceInterface{"tenant": f.tenant, "administrator": f.admin} {
				_, err := try(t, jobs, c.patch, dryRun)
				switch {
				case kind.isOlder() && c.patch != kind.suspend("true"):
					refused(t, err, "cannot be changed in version "+kind.resource.Version)
				case apierrors.IsInvalid(err): // the CRD does not allow it
				case c.refused:
					refused(t, err, "cannot grow or change")
				default:
					allowed(t, user, err)
				}
			}
			_, err := try(t, f.queue, c.patch, dryRun)
			mayChange := strings.Contains(c.patch, "cleanPodPolicy") // without it, some pods stay after a suspension
			if c.refused && !mayChange && !apierrors.IsInvalid(err) && (!apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "job-extensions changes only")) {
				t.Errorf("job-extensions may change it: %v", err)
			}
		})
	}
	_, err := try(t, f.queue, `{metadata: {annotations: {scheduling.x-k8s.io/suspend: "true", scheduling.x-k8s.io/active: "false", kube-queue/released: null}}, `+
		strings.TrimPrefix(kind.suspend("true"), "{"), dryRun)
	allowed(t, "an eviction for good", err)
	if !kind.isOlder() {
		_, err = try(t, f.tenant, entries("metadata", "labels", 500), metav1.PatchOptions{})
		must(t, err)
		_, err = try(t, f.tenant, entries("metadata", "annotations", 501), dryRun)
		refused(t, err, "at most 1000 labels")
		_, err = try(t, f.queue, kind.suspend("true"), dryRun)
		allowed(t, "a suspension of a job with many labels", err)
	}
	if kind.Kind.Kind == "Workflow" {
		for _, field := range []string{"spec", "status"} {
			_, err = try(t, f.tenant, entries(field, "", 1001), dryRun)
			refused(t, err, "fields of spec and status")
		}
		for _, unsized := range []string{`{metadata: {annotations: null}}`, `{metadata: {annotations: {kube-queue/managed: "false"}}, spec: {suspend: true}}`} {
			_, err = try(t, f.tenant, unsized, dryRun) // it would be queued again without its size
			refused(t, err, "keeps the annotation kube-queue/managed")
		}
		_, err = try(t, f.tenant, `{metadata: {annotations: {kube-queue/min-resources: null}}}`, dryRun)
		allowed(t, "no size", err)
		// Argo runs the templates that it has stored in the status.
		_, err = try(t, f.admin, `{status: {phase: Running, startedAt: "2026-01-01T00:00:00Z"}}`, metav1.PatchOptions{})
		must(t, err)
		_, err = try(t, f.queue, `{status: {storedTemplates: {a: {name: a}}}}`, dryRun)
		forbidden(t, "stores a template", err, "job-extensions changes nothing in the status of a Workflow")
		_, err = try(t, f.queue, `{status: {phase: null, startedAt: null}}`, dryRun)
		allowed(t, "a release that starts the clock again", err)
		_, err = try(t, f.tenant, endedStatus(kind), metav1.PatchOptions{})
		must(t, err)
		for _, again := range []string{`{status: {phase: Running}}`, `{status: null}`, `{metadata: {labels: null}, status: {nodes: null}}`} {
			_, err = try(t, f.tenant, again, dryRun)
			refused(t, err, "that has ended cannot run again")
		}
		_, err = try(t, f.tenant, `{metadata: {labels: {a: b}}, status: {phase: Failed}}`, dryRun)
		allowed(t, "a change that does not start it again", err)
	}
	_, err = try(t, f.queue, `{metadata: {labels: {kube-queue/quota-name: b}}}`, dryRun)
	if !apierrors.IsForbidden(err) {
		t.Errorf("job-extensions may change labels of kube-queue: %v", err)
	}
	scaleTests(t, kind, f)
}

// entries is a patch that adds many entries to a map.
func entries(parent, field string, count int) string {
	var all []string
	for i := range count {
		all = append(all, fmt.Sprintf(`a%d: "1"`, i))
	}
	text := strings.Join(all, ", ")
	if field != "" {
		text = field + ": {" + text + "}"
	}
	return "{" + parent + ": {" + text + "}}"
}

// scaleTests tests the scale subresource.
func scaleTests(t *testing.T, kind heldKind, f fenced) {
	t.Helper()
	dryRun := metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}}
	scale := func(n int) error {
		_, err := try(t, f.tenant, fmt.Sprintf(`{spec: {replicas: %d}}`, n), dryRun, "scale")
		return err
	}
	if len(kind.Fence.Scale) == 0 {
		if err := scale(1); !apierrors.IsNotFound(err) {
			t.Errorf("the kind has the subresource scale, and no policy fences it in: %v", err)
		}
		return
	}
	allowed(t, "scaled down", scale(0))
	// The policy reads jobs from a cache of the API server.
	eventually(t, "scaling up is refused", func(context.Context) error {
		if err := scale(90); !apierrors.IsForbidden(err) {
			return fmt.Errorf("not refused: %v", err)
		}
		return nil
	})
	refused(t, scale(90), "cannot grow")
	if kind.Kind.Kind != "PyTorchJob" {
		return
	}
	allowed(t, "delete", f.tenant.Delete(t.Context(), "held", metav1.DeleteOptions{PropagationPolicy: ptr.To(metav1.DeletePropagationBackground)}))
	create(t, f.tenant, kind.job(t, `{spec: {elasticPolicy: {minReplicas: 1, maxReplicas: 5}}}`))
	kind.release(t, f.queue)
	eventually(t, "an elastic job is scaled within its policy", func(context.Context) error { return scale(5) })
	refused(t, scale(6), "beyond its elasticPolicy")
	_, err := try(t, f.tenant, `{spec: {pytorchReplicaSpecs: {Worker: {replicas: 5}}}}`, dryRun)
	allowed(t, "a larger elastic job", err)
	_, err = try(t, f.tenant, `{spec: {pytorchReplicaSpecs: {Worker: {replicas: 6}}}}`, dryRun)
	refused(t, err, "cannot grow")
}

func noJobLeavesItsPods(t *testing.T, kind heldKind, _ dynamic.ResourceInterface) {
	f := fencedNamespace(t, kind)
	create(t, f.tenant, kind.job(t))
	kind.release(t, f.queue)
	dryRun := []string{metav1.DryRunAll}
	_, err := try(t, f.tenant, `{metadata: {finalizers: [orphan]}}`, metav1.PatchOptions{DryRun: dryRun})
	refused(t, err, "finalizer orphan")
	deleted := func(jobs dynamic.ResourceInterface, options metav1.DeleteOptions) error {
		options.DryRun = dryRun
		return jobs.Delete(t.Context(), "held", options)
	}
	orphan := metav1.DeleteOptions{PropagationPolicy: ptr.To(metav1.DeletePropagationOrphan)}
	for _, jobs := range []dynamic.ResourceInterface{f.tenant, f.admin} {
		refused(t, deleted(jobs, orphan), "must delete its pods too")
		refused(t, deleted(jobs, metav1.DeleteOptions{OrphanDependents: ptr.To(true)}), "must delete its pods too")
	}
	list := metav1.ListOptions{}
	refused(t, f.tenant.DeleteCollection(t.Context(), orphan, list), "must delete its pods too")
	for _, policy := range []metav1.DeletionPropagation{metav1.DeletePropagationBackground, metav1.DeletePropagationForeground} {
		allowed(t, string(policy), deleted(f.tenant, metav1.DeleteOptions{PropagationPolicy: &policy}))
	}
	if err := deleted(f.tenant, metav1.DeleteOptions{}); kind.Native {
		refused(t, err, "without a policy the API deletes a Job and keeps its pods")
	} else {
		allowed(t, "without a policy", err)
	}
	if kind.Native {
		allowed(t, "delete", f.tenant.Delete(t.Context(), "held", metav1.DeleteOptions{PropagationPolicy: ptr.To(metav1.DeletePropagationBackground)}))
		empty := kind.job(t, `{spec: {completions: 0, parallelism: 0}}`)
		eventually(t, "a new Job", func(ctx context.Context) error {
			_, err := f.tenant.Create(ctx, empty, metav1.CreateOptions{})
			return err
		})
		kind.release(t, f.queue)
		eventually(t, "the Job has ended and leaves its pods", func(context.Context) error { return deleted(f.tenant, metav1.DeleteOptions{}) })
	}
	if ended := endedStatus(kind); ended != "" {
		status := []string{"status"}
		if kind.Kind.Kind == "Workflow" {
			status = nil // it has no status subresource
		}
		_, err = try(t, f.admin, ended, metav1.PatchOptions{}, status...)
		must(t, err)
		allowed(t, "the ended job leaves its pods", deleted(f.tenant, orphan))
	}
}

// endedStatus is a status patch that ends a job, or "" for kinds that never end.
func endedStatus(kind heldKind) string {
	const at = "2026-01-01T00:00:00Z"
	condition := func(name string) string {
		return `{status: {conditions: [{type: ` + name + `, status: "True", reason: Done, message: done, lastTransitionTime: "` + at + `"}]}}`
	}
	switch kind.Kind.Kind {
	case "Job", "RayCluster": // the Job controller ends a Job
		return ""
	case "RayJob":
		return `{status: {jobDeploymentStatus: Complete, jobStatus: SUCCEEDED}}`
	case "SparkApplication":
		return `{status: {applicationState: {state: COMPLETED}, driverInfo: {}}}`
	case "JobSet":
		return condition("Completed")
	case "TrainJob":
		return condition("Complete")
	case "Workflow":
		return `{metadata: {labels: {workflows.argoproj.io/completed: "true"}}, status: {phase: Succeeded}}`
	default:
		return condition("Succeeded")
	}
}

// partsOfJobs tests the operators of the kinds that create other jobs.
func partsOfJobs(t *testing.T, kind heldKind, _ dynamic.ResourceInterface) {
	if !kind.Native {
		return
	}
	f := fencedNamespace(t, kind)
	// The name of an operator that is not installed, with all rights in the namespace except the verb operate.
	const operator = "system:serviceaccount:ray-system:kuberay-operator"
	jobs := f.as(t, kind, operator)
	grant(t, f.namespace, "ClusterRole", "admin", operator)
	grant(t, f.namespace, "Role", "tenant", operator)
	part := f.partOf(t, "RayJob")
	queued := create(t, jobs, kind.job(t, part), metav1.DryRunAll)
	kind.wantSuspended(t, queued, true)
	wantQueued(t, queued, true)
	grant(t, f.namespace, "ClusterRole", "kube-queue-operator-rayjob", operator)
	running := create(t, jobs, kind.job(t, part), metav1.DryRunAll)
	kind.wantSuspended(t, running, false)
	wantQueued(t, running, false)
	for name, merged := range map[string]string{
		"a part of something that is not queued": ownedBy("example.com/v1", "RayJob", "true"),
		"a job of a kind that has no such parts": strings.Replace(part, "RayJob", "Workflow", 1),
		"a part of the job of another operator":  ownedBy("jobset.x-k8s.io/v1alpha2", "JobSet", "true"),
		"no part":                                ownedBy("ray.io/v1", "RayJob", "false"),
	} {
		job := create(t, jobs, kind.job(t, merged), metav1.DryRunAll)
		kind.wantSuspended(t, job, true)
		if t.Failed() {
			t.Fatal(name)
		}
	}
	create(t, jobs, kind.job(t, part, kind.suspend("true"), `{spec: {parallelism: 2, completions: null}}`))
	dryRun := metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}}
	for _, test := range []struct{ patch, refused string }{ // with this, its operator would start it
		{`{spec: {parallelism: 9}}`, "cannot grow or change"},
		{`{spec: {suspend: true, parallelism: 9}}`, "cannot grow or change"},
		{`{metadata: {annotations: {kube-queue/not-part-of: x}}}`, "kube-queue/not-part-of"},
	} {
		_, err := try(t, f.tenant, test.patch, dryRun)
		refused(t, err, test.refused)
	}
	_, err := try(t, f.tenant, `{spec: {parallelism: 1}}`, dryRun)
	allowed(t, "a smaller part", err)
	_, err = try(t, jobs, `{spec: {parallelism: 9}}`, dryRun)
	allowed(t, "the operator changes the size of a part", err)
	_, err = try(t, f.tenant, kind.suspend("false"), dryRun)
	refused(t, err, "only kube-queue starts a Job")
	resumed, err := try(t, jobs, kind.suspend("false"), dryRun)
	allowed(t, "the operator resumes the part", err)
	if err == nil {
		kind.wantSuspended(t, resumed, false)
	}
	patchOf := func(jobs dynamic.ResourceInterface, name, text string, dryRun ...string) (*unstructured.Unstructured, error) {
		return jobs.Patch(t.Context(), name, types.MergePatchType, toJSON(t, text), metav1.PatchOptions{DryRun: dryRun})
	}
	// An operator also starts what a user has made in the name of its job.
	create(t, f.tenant, kind.job(t, part, `{metadata: {name: forged}}`))
	startForged := func() {
		started, err := patchOf(jobs, "forged", kind.suspend("false"), metav1.DryRunAll)
		allowed(t, "the operator starts a forged part", err)
		if err == nil {
			kind.wantSuspended(t, started, true)
		}
	}
	startForged()
	for _, text := range []string{`{metadata: {annotations: {kube-queue/not-part-of: null}}}`, `{metadata: {annotations: {kube-queue/not-part-of: x}}}`} {
		_, err = patchOf(f.tenant, "forged", text, metav1.DryRunAll)
		refused(t, err, "kube-queue/not-part-of")
	}
	_, err = patchOf(f.tenant, "forged", `{metadata: {annotations: {kube-queue/managed: null}}}`)
	allowed(t, "an annotation of a forged part", err) // it gets it back
	startForged()
	// An operator copies annotations of a job, or of a template in it, to the parts.
	create(t, jobs, kind.job(t, part, kind.suspend("true"), `{metadata: {name: copied, annotations: {kube-queue/not-part-of: x}}, spec: {parallelism: 2, completions: null}}`))
	_, err = patchOf(f.tenant, "copied", `{spec: {parallelism: 9}}`, metav1.DryRunAll)
	refused(t, err, "cannot grow or change")
	started, err := patchOf(jobs, "copied", kind.suspend("false"), metav1.DryRunAll)
	allowed(t, "the operator resumes a part with a copied annotation", err)
	if err == nil {
		kind.wantSuspended(t, started, false)
	}
	const disowned = `{metadata: {ownerReferences: null}}`
	const other = "system:serviceaccount:kube-system:other"
	grant(t, f.namespace, "Role", "tenant", other)
	_, err = try(t, f.as(t, kind, other), disowned, dryRun)
	refused(t, err, "the owners of a Job cannot be changed")
	_, err = try(t, f.as(t, kind, "system:serviceaccount:kube-system:generic-garbage-collector"), disowned, dryRun)
	allowed(t, "the garbage collector removes an owner that is gone", err)
}

// partOf creates a job of the kind, because the garbage collector deletes objects whose owner does not exist. It returns
// metadata of a part of the job.
func (f fenced) partOf(t *testing.T, kind string) string {
	t.Helper()
	all := heldKinds(t)
	of := all[slices.IndexFunc(all, func(k heldKind) bool { return k.Kind.Kind == kind })]
	owner := create(t, objects(t).Resource(of.resource).Namespace(f.namespace), of.job(t))
	return strings.NewReplacer("name: owner", "name: "+owner.GetName(), "uid: u", "uid: "+string(owner.GetUID())).
		Replace(ownedBy(owner.GetAPIVersion(), kind, "true"))
}

// noJobSetIsMadeAgain tests that nobody has Trainer create another JobSet of a TrainJob that was released or has failed.
func noJobSetIsMadeAgain(t *testing.T, kind heldKind, _ dynamic.ResourceInterface) {
	f := fencedNamespace(t, kind)
	const operator, account = "trainer", "system:serviceaccount:kube-system:"
	jobs := f.as(t, kind, operator)
	grant(t, f.namespace, "Role", "tenant", operator)
	grant(t, f.namespace, "ClusterRole", "kube-queue-operator-trainjob", operator)
	kind.wantSuspended(t, create(t, jobs, kind.job(t, f.partOf(t, "TrainJob"))), false)
	dryRun := metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}}
	refused(t, f.tenant.Delete(t.Context(), "held", dryRun), "Delete the TrainJob")
	refused(t, f.tenant.DeleteCollection(t.Context(), dryRun, metav1.ListOptions{}), "Delete the TrainJob")
	for user, by := range map[string]dynamic.ResourceInterface{
		"operator": jobs, "garbage collector": f.as(t, kind, account+"generic-garbage-collector"), "namespace controller": f.as(t, kind, account+"namespace-controller"),
	} {
		allowed(t, user, by.Delete(t.Context(), "held", dryRun))
	}
}

// damagedInManagedNamespace tests that the fence refuses damaged jobs only with its own messages.
func damagedInManagedNamespace(t *testing.T, kind heldKind, _ dynamic.ResourceInterface) {
	if kind.Native {
		return // the API server cannot even decode it
	}
	f := fencedNamespace(t, kind)
	wantReason := func(what string, err error) {
		t.Helper()
		if err != nil && !apierrors.IsInvalid(err) && !strings.Contains(err.Error(), fenceSays) && !strings.Contains(err.Error(), "invalid") {
			t.Errorf("%s: %v", what, err)
		}
	}
	waiting, released := kind.job(t, `{metadata: {name: waiting}}`), kind.job(t)
	create(t, f.tenant, waiting)
	create(t, f.tenant, released)
	kind.release(t, f.queue)
	for _, damage := range slices.Concat(damages(kind), fenceDamages(kind)) {
		for _, name := range []string{"waiting", "held"} {
			_, err := f.tenant.Patch(t.Context(), name, types.MergePatchType, toJSON(t, damage), metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}})
			wantReason(name+" patched with "+damage, err)
		}
		created, err := f.tenant.Create(t.Context(), kind.job(t, damage, `{metadata: {name: damaged}}`), metav1.CreateOptions{})
		wantReason("created with "+damage, err)
		if err != nil {
			continue
		}
		sound := kind.job(t, `{metadata: {name: damaged}}`, kind.suspend("false"))
		sound.SetResourceVersion(created.GetResourceVersion())
		repaired, err := f.tenant.Update(t.Context(), sound, metav1.UpdateOptions{})
		wantReason("repaired after "+damage, err)
		if err == nil && !kind.suspended(repaired) {
			t.Errorf("created with %s and then repaired, the job runs", damage)
		}
		wantReason("deleted with "+damage, f.tenant.Delete(t.Context(), "damaged", metav1.DeleteOptions{PropagationPolicy: ptr.To(metav1.DeletePropagationBackground)}))
	}
}

// fenceDamages are invalid values of the fields that the fence reads.
func fenceDamages(kind heldKind) []string {
	var all []string
	for _, value := range []string{"text", "5", "[]", "[1, a]", "{}", "{a: {b: c}}", "null", "[{}]", "[null]", "{Worker: null}", "{Worker: 5}"} {
		for _, path := range fencePaths(kind.Fence) {
			all = append(all, nested(path, value))
		}
		all = append(all, "{status: {conditions: "+value+"}}")
	}
	return all
}

func fencePaths(fence framework.Fence) [][]string {
	paths := slices.DeleteFunc(slices.Clone(fence.Frozen), func(path []string) bool { return path[0] == "metadata" })
	for _, groups := range fence.Groups {
		paths = append(paths, groups.Path)
	}
	if len(fence.Ended.Path) > 0 {
		paths = append(paths, fence.Ended.Path)
	}
	return paths
}
