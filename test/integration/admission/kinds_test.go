package admission

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	"kube-queue.dev/kube-queue/test/acceptance/kinds"
	"kube-queue.dev/kube-queue/test/clustertest"
)

const mark = "scheduling.x-k8s.io/suspend"

// heldKind is a kind of job that a policy holds, in one of its versions.
type heldKind struct {
	kinds.Sample
	title    string
	resource schema.GroupVersionResource
	// manifest is a job of the kind without a mark and without the fields that a policy sets.
	manifest *unstructured.Unstructured
	// holder is the path of the parent of the suspend field.
	holder []string
	// manager is the managedBy value of the kind's own controller. Some kinds, and older versions of others, have no
	// managedBy.
	manager string
	// operator is the operator whose CRD must be installed if several share a CRD.
	operator string
}

// heldKinds returns each kind that the API server can serve, in each version. Kinds that replace another come last.
func heldKinds(t testing.TB) []heldKind {
	t.Helper()
	samples, err := kinds.All()
	must(t, err)
	var alone, shared []heldKind
	for _, sample := range samples {
		if !sample.Native && !slices.ContainsFunc(operators, func(o clustertest.Operator) bool { return o.Runs(sample.Kind) }) {
			continue // this version of Kubernetes does not accept its CRD
		}
		operator := operatorOfShared(samples, sample)
		for _, version := range sample.Versions() {
			kind := newHeldKind(sample, version)
			if kind.operator = operator; operator == "" {
				alone = append(alone, kind)
				continue
			}
			kind.title = sample.Kind.Kind + " " + version
			shared = append(shared, kind)
		}
	}
	return slices.Concat(alone, shared)
}

func newHeldKind(sample kinds.Sample, version string) heldKind {
	last := len(sample.SuspendPath) - 1
	kind := heldKind{
		Sample: sample, title: sample.Kind.Kind, resource: sample.GVR(version), holder: sample.SuspendPath[:last:last],
		manifest: sample.Unmarked(version), manager: sample.ManagedBy,
	}
	if version != sample.Version {
		kind.title, kind.manager = kind.title+" "+version, ""
	}
	kind.manifest.SetName("held")
	if len(kind.holder) > 1 { // tests set the other fields of the parent
		unstructured.RemoveNestedField(kind.manifest.Object, kind.holder...)
	}
	if kind.isRayJob() {
		unstructured.RemoveNestedField(kind.manifest.Object, "spec", "shutdownAfterJobFinishes")
	}
	return kind
}

// operatorOfShared returns the operator of a kind that shares its resource with another kind, such as MPIJob. For
// other kinds it returns "".
func operatorOfShared(samples []kinds.Sample, sample kinds.Sample) string {
	if !slices.ContainsFunc(samples, func(other kinds.Sample) bool {
		return other.Name != sample.Name && other.Group == sample.Group && other.Resource == sample.Resource
	}) {
		return ""
	}
	return operators[slices.IndexFunc(operators, func(o clustertest.Operator) bool { return o.Runs(sample.Kind) })].Name
}

// kindTest is a test of one kind, with its own namespace.
type kindTest struct {
	name string
	test func(t *testing.T, kind heldKind, jobs dynamic.ResourceInterface)
}

func TestHoldingEachKind(t *testing.T) {
	eachKind(t, func(kind heldKind) []kindTest {
		if testing.Short() && !slices.Contains(thorough, kind.title) {
			return briefTests()
		}
		return slices.Concat(holdTests(), applyTests(), damageTests(), managedTests(), fenceTests(kind))
	})
}

// thorough are the kinds that make test tests in full: a native one, one of the kubeflow kinds, and the one with the
// most rules of its own. One template renders the policies of all kinds.
var thorough = []string{"Job", "PyTorchJob", "RayJob"}

// briefTests are the tests that depend most on the fields of a kind.
func briefTests() []kindTest {
	return []kindTest{
		{"which new jobs are held", whichNewJobsAreHeld},
		{"a held job stays held until its release", heldUntilItsRelease},
		{"no new job runs in a managed namespace", noNewJobRuns},
		{"a released job of a managed namespace does not grow", noReleasedJobGrows},
	}
}

func eachKind(t *testing.T, tests func(heldKind) []kindTest) {
	for _, kind := range heldKinds(t) {
		t.Run(kind.title, func(t *testing.T) {
			kind.serve(t)
			for _, test := range tests(kind) {
				t.Run(test.name, func(t *testing.T) {
					test.test(t, kind, objects(t).Resource(kind.resource).Namespace(namespace(t)))
				})
			}
		})
	}
}

// serve installs the CRD of the kind, and removes that of another kind with the same name.
func (k heldKind) serve(t *testing.T) {
	t.Helper()
	if k.operator == "" {
		return
	}
	list, err := core(t).Discovery().ServerResourcesForGroupVersion(k.resource.GroupVersion().String())
	if err == nil && slices.ContainsFunc(list.APIResources, func(r metav1.APIResource) bool { return r.Name == k.resource.Resource }) {
		return
	}
	kubectl(t, "", "delete", "crd", k.resource.GroupResource().String())
	must(t, cluster.InstallCRDs(t.Context(), k.operator))
}

// isOlder reports whether the API server also serves the kind in a newer version.
func (k heldKind) isOlder() bool { return slices.Contains(k.Kind.OlderVersions, k.resource.Version) }

func (k heldKind) isRayJob() bool { return k.resource.Resource == "rayjobs" }

// hasRunPolicy reports whether the kind has cleanPodPolicy in runPolicy.
func (k heldKind) hasRunPolicy() bool { return slices.Equal(k.holder, []string{"spec", "runPolicy"}) }

// job returns the kind's manifest merged with values in YAML.
func (k heldKind) job(t testing.TB, merged ...string) *unstructured.Unstructured {
	t.Helper()
	job := k.manifest.DeepCopy()
	for _, text := range merged {
		var part map[string]any
		if err := yaml.Unmarshal([]byte(text), &part); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		job.Object = merge(job.Object, part)
	}
	return job
}

// merge puts the values of part into object; null stays null, as in a manifest.
func merge(object, part map[string]any) map[string]any {
	if object == nil {
		object = map[string]any{}
	}
	for key, value := range part {
		inner, isMap := value.(map[string]any)
		old, wasMap := object[key].(map[string]any)
		if isMap && wasMap && len(inner) > 0 {
			value = merge(old, inner)
		}
		object[key] = value
	}
	return object
}

// suspend returns a patch, or a part of a manifest, that sets the suspend field.
func (k heldKind) suspend(value string) string { return k.field("suspend", value) }

// field returns a patch of a field next to the suspend field.
func (k heldKind) field(name, value string) string {
	return nested(k.holder, "{"+name+": "+value+"}")
}

func nested(path []string, value string) string {
	for i := len(path) - 1; i >= 0; i-- {
		value = "{" + path[i] + ": " + value + "}"
	}
	return value
}

func (k heldKind) suspended(job *unstructured.Unstructured) bool {
	value, _, _ := unstructured.NestedBool(job.Object, append(k.holder, "suspend")...)
	return value
}

func (k heldKind) wantSuspended(t *testing.T, job *unstructured.Unstructured, want bool) {
	t.Helper()
	if got := k.suspended(job); got != want {
		spec, _ := yaml.Marshal(job.Object["spec"])
		t.Errorf("suspended %v, want %v\n%s", got, want, spec)
	}
}

const marked = `{metadata: {annotations: {scheduling.x-k8s.io/suspend: "true"}}}`

// isPartOf reports whether the operator of the owner creates jobs of the kind as parts.
func (k heldKind) isPartOf(owner heldKind) bool { return slices.Contains(owner.Parts, k.GroupKind()) }

func ownedBy(apiVersion, kind, controller string) string {
	return fmt.Sprintf(`{metadata: {ownerReferences: [{apiVersion: %s, kind: %s, name: owner, uid: u, controller: %s}]}}`, apiVersion, kind, controller)
}

func create(t *testing.T, jobs dynamic.ResourceInterface, job *unstructured.Unstructured, dryRun ...string) *unstructured.Unstructured {
	t.Helper()
	created, err := jobs.Create(t.Context(), job, metav1.CreateOptions{DryRun: dryRun})
	must(t, err)
	return created
}

func patch(t *testing.T, jobs dynamic.ResourceInterface, text string) *unstructured.Unstructured {
	t.Helper()
	patched, err := jobs.Patch(t.Context(), "held", types.MergePatchType, toJSON(t, text), metav1.PatchOptions{})
	must(t, err)
	return patched
}

func toJSON(t *testing.T, text string) []byte {
	t.Helper()
	data, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return data
}

// releaseText returns the patch that releases a job.
func (k heldKind) releaseText() string {
	unmark, with := `scheduling.x-k8s.io/suspend: "false", kube-queue/released: "1"`, k.suspend("false")
	if k.isRayJob() {
		unmark += `, kube-queue/shutdown-after-job-finishes: null`
		with = `{spec: {suspend: false, shutdownAfterJobFinishes: false}}`
	}
	return "{metadata: {annotations: {" + unmark + "}}, " + strings.TrimPrefix(with, "{")
}

// release is the patch with which job-extensions releases a job.
func (k heldKind) release(t *testing.T, jobs dynamic.ResourceInterface) *unstructured.Unstructured {
	t.Helper()
	released := patch(t, jobs, k.releaseText())
	k.wantSuspended(t, released, false)
	if value := released.GetAnnotations()[mark]; value != "false" {
		t.Errorf("the mark is %q after the release", value)
	}
	return released
}
