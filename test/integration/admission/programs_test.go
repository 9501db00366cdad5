package admission

import (
	"context"
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	"kube-queue.dev/kube-queue/test/clustertest"
)

// asProgram returns a client with the rights of a program.
func asProgram(t *testing.T, name string) dynamic.Interface {
	t.Helper()
	client, err := dynamic.NewForConfig(program(t, name))
	must(t, err)
	return client
}

// forbidden checks that a policy refused a request with a message that begins with these words.
func forbidden(t *testing.T, what string, err error, says string) {
	t.Helper()
	if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), says) {
		t.Errorf("%s: not refused with %q: %v", what, says, err)
	}
}

// otherJobsAreLeftAlone tests which jobs job-extensions may change, with its own rights.
func otherJobsAreLeftAlone(t *testing.T, kind heldKind, jobs dynamic.ResourceInterface) {
	job := create(t, jobs, kind.job(t))
	queue := asProgram(t, "job-extensions").Resource(kind.resource).Namespace(job.GetNamespace())
	dryRun := metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}}
	const onlyQueued = "job-extensions changes only jobs that are marked"
	// The operators do not run, and Kubernetes changes only the status of a Job.
	for what, text := range map[string]string{
		"suspends an unmarked job":           kind.suspend("true"),
		"marks it":                           marked,
		"marks and suspends it":              `{metadata: {annotations: {scheduling.x-k8s.io/suspend: "true"}}, ` + strings.TrimPrefix(kind.suspend("true"), "{"),
		"writes that it was released before": `{metadata: {annotations: {kube-queue/released: "1"}}}`,
	} {
		_, err := try(t, queue, text, dryRun)
		forbidden(t, what, err, onlyQueued)
	}
	if kind.hasRunPolicy() {
		_, err := try(t, queue, `{status: {conditions: []}}`, dryRun, "status")
		forbidden(t, "writes the status of an unmarked job", err, onlyQueued)
	}
	_, err := try(t, jobs, marked, metav1.PatchOptions{})
	allowed(t, "the owner marks it", err)
	_, err = try(t, queue, kind.suspend("true"), dryRun)
	allowed(t, "job-extensions suspends a job that was marked late", err)
	_, err = try(t, queue, bypass, dryRun)
	forbidden(t, "takes it out of the queue", err, "job-extensions changes only its own annotations")
	_, err = try(t, queue, `{metadata: {annotations: {kube-queue/managed: "true"}}}`, dryRun)
	forbidden(t, "writes an annotation of the policies", err, "job-extensions changes only its own annotations")
	_, err = try(t, queue, `{metadata: {labels: {kube-queue/quota-name: other}}}`, dryRun)
	forbidden(t, "gives it to another quota", err, "job-extensions changes only its own annotations")
	_, err = try(t, queue, `{metadata: {finalizers: [example.com/a]}}`, dryRun)
	forbidden(t, "adds a finalizer", err, "job-extensions changes only its own annotations")
	// Another mutating webhook changes the object of the request before the policy sees it.
	_, err = try(t, queue, `{metadata: {labels: {example.com/cost-center: a}, annotations: {example.com/last-change-by: b}}}`, dryRun)
	allowed(t, "a webhook writes its own keys in the same request", err)

	// A user who unsuspends a queued job may remove all marks at the same time.
	create(t, jobs, kind.job(t, `{metadata: {name: loosened}}`, kind.suspend("true")))
	loosen := func(jobs dynamic.ResourceInterface, text string, options metav1.PatchOptions) error {
		_, err := jobs.Patch(t.Context(), "loosened", types.MergePatchType, toJSON(t, text), options)
		return err
	}
	allowed(t, "the owner unsuspends it", loosen(jobs, `{metadata: {annotations: null}, `+strings.TrimPrefix(kind.suspend("false"), "{"), metav1.PatchOptions{}))
	allowed(t, "job-extensions suspends it again", loosen(queue, kind.suspend("true"), dryRun))
}

func TestTheProgramsWriteOnlyWhatIsTheirs(t *testing.T) {
	const (
		extensions, controller = "job-extensions", "kube-queue-controller"
		template               = `template: {spec: {containers: [{name: a, image: i}]}}`
		ofUnit                 = `labels: {kube-queue/queue-unit-uid: u}, ownerReferences: [{apiVersion: scheduling.x-k8s.io/v1alpha1, kind: QueueUnit, name: a, uid: u, controller: true}]`
		ports                  = `addressType: IPv4, endpoints: [{addresses: [10.1.1.1]}], ports: [{name: webhook, port: 9443}]`
		ownEvents              = "the programs of kube-queue write only their own events"
		ownTemplates           = "the programs of kube-queue change only PodTemplates"
		ownLease               = "a program of kube-queue creates only its own Lease"
		ownSlice               = "kube-queue-controller writes only the EndpointSlice of its own Service"
	)
	ns := namespace(t)
	event := func(about, component string) string {
		return fmt.Sprintf(`{apiVersion: v1, kind: Event, metadata: {name: NAME}, reason: Because, message: m, type: Normal, source: {component: %s},
			involvedObject: {%s, namespace: %s, name: a, uid: u}}`, component, about, ns)
	}
	podTemplate := func(metadata string) string {
		return `{apiVersion: v1, kind: PodTemplate, metadata: {name: NAME, ` + metadata + `}, ` + template + `}`
	}
	slice := func(name, service string) string {
		return fmt.Sprintf(`{apiVersion: discovery.k8s.io/v1, kind: EndpointSlice, metadata: {name: %s, labels: {kubernetes.io/service-name: %s}}, %s}`, name, service, ports)
	}
	lease := func(name string) string {
		return fmt.Sprintf(`{apiVersion: coordination.k8s.io/v1, kind: Lease, metadata: {name: %s}, spec: {holderIdentity: me}}`, name)
	}
	itsSlice, otherSlice := "", ownSlice
	if cluster.HoldsBy == clustertest.HoldByWebhook { // without the policies of 1.36, nothing proves reviews, so they are off
		itsSlice, otherSlice = `cannot create resource "endpointslices"`, `cannot create resource "endpointslices"`
	}
	aJob, aUnit := "apiVersion: batch/v1, kind: Job", "apiVersion: scheduling.x-k8s.io/v1alpha1, kind: QueueUnit"
	for _, test := range []struct {
		name, program, resource, ns, object string
		refused                             string // empty if it is allowed
	}{
		{"an event about a Job", extensions, "v1/events", ns, event(aJob, extensions), ""},
		{"an event about a RayJob of an older version", extensions, "v1/events", ns, event("apiVersion: ray.io/v1alpha1, kind: RayJob", extensions), ""},
		{"an event about a QueueUnit", controller, "v1/events", ns, event(aUnit, controller), ""},
		{"an event about a quota tree", controller, "v1/events", ns, event("apiVersion: scheduling.sigs.k8s.io/v1beta1, kind: ElasticQuotaTree", controller), ""},
		{"an event about a Pod", extensions, "v1/events", ns, event("apiVersion: v1, kind: Pod", extensions), ownEvents},
		{"an event about a CronJob", extensions, "v1/events", ns, event("apiVersion: batch/v1, kind: CronJob", extensions), ownEvents},
		{"an event about a Node", controller, "v1/events", ns, event("kind: Node", controller), ownEvents},
		{"an event in the name of the other program", extensions, "v1/events", ns, event(aJob, controller), ownEvents},
		{"an event in the name of the Job controller", extensions, "v1/events", ns, event(aJob, "job-controller"), ownEvents},
		{"a PodTemplate of a unit", extensions, "v1/podtemplates", ns, podTemplate(ofUnit), ""},
		{"a PodTemplate of nobody", extensions, "v1/podtemplates", ns, podTemplate(`labels: {kube-queue/queue-unit-uid: u}`), ownTemplates},
		{"a PodTemplate of another owner", extensions, "v1/podtemplates", ns, podTemplate(strings.Replace(ofUnit, "kind: QueueUnit", "kind: Queue", 1)), ownTemplates},
		{"a PodTemplate of another unit than its label says", extensions, "v1/podtemplates", ns, podTemplate(strings.Replace(ofUnit, "uid: u}", "uid: v}", 1)), ownTemplates},
		{"its Lease", extensions, "coordination.k8s.io/v1/leases", "kube-queue", lease(extensions), ""},
		{"the Lease of the other program", extensions, "coordination.k8s.io/v1/leases", "kube-queue", lease(controller), ownLease},
		{"the EndpointSlice of its Service", controller, "discovery.k8s.io/v1/endpointslices", "kube-queue", slice("kube-queue-controller-webhook", "kube-queue-controller-webhook"), itsSlice},
		{"another EndpointSlice of its Service", controller, "discovery.k8s.io/v1/endpointslices", "kube-queue", slice("other", "kube-queue-controller-webhook"), otherSlice},
		{"an EndpointSlice of another Service", controller, "discovery.k8s.io/v1/endpointslices", "kube-queue", slice("kube-queue-controller-webhook", "job-extensions-webhook"), otherSlice},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := asProgram(t, test.program).Resource(resourceOf(test.resource)).Namespace(test.ns).
				Create(t.Context(), objectOf(t, strings.Replace(test.object, "NAME", "one", 1)), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
			if test.refused == "" {
				allowed(t, test.name, err)
				return
			}
			forbidden(t, test.name, err, test.refused)
		})
	}
	admin, own := objects(t), asProgram(t, extensions)
	made := func(resource, object string) {
		t.Helper()
		_, err := admin.Resource(resourceOf(resource)).Namespace(ns).Create(t.Context(), objectOf(t, object), metav1.CreateOptions{})
		must(t, err)
	}
	made("v1/events", strings.Replace(event(aJob, "job-controller"), "NAME", "of-others", 1))
	made("v1/events", strings.Replace(event(aJob, extensions), "NAME", "own", 1))
	events := own.Resource(resourceOf("v1/events")).Namespace(ns)
	for _, patch := range []string{`{"message":"other"}`, `{"source":{"component":"job-extensions"}}`} {
		_, err := events.Patch(t.Context(), "of-others", types.MergePatchType, []byte(patch), metav1.PatchOptions{})
		forbidden(t, "an event of the Job controller is changed", err, ownEvents)
	}
	_, err := events.Patch(t.Context(), "own", types.MergePatchType, []byte(`{"count":2}`), metav1.PatchOptions{})
	allowed(t, "its own event is counted", err)
	made("v1/podtemplates", strings.Replace(podTemplate(""), "NAME", "of-others", 1))
	templates := own.Resource(resourceOf("v1/podtemplates")).Namespace(ns)
	forbidden(t, "a PodTemplate of others is deleted", templates.Delete(t.Context(), "of-others", metav1.DeleteOptions{}), ownTemplates)
	// The garbage collector deletes a PodTemplate whose owner does not exist.
	unit, err := unitsAs(t, cluster.Config(), ns).Create(t.Context(), unit("by-hand", "example.com/v1", "Thing"), metav1.CreateOptions{})
	must(t, err)
	made("v1/podtemplates", strings.Replace(podTemplate(strings.NewReplacer("name: a", "name: by-hand", "uid: u", "uid: "+string(unit.UID)).Replace(ofUnit)), "NAME", "own", 1))
	eventually(t, "its own PodTemplate is deleted", func(ctx context.Context) error {
		return templates.Delete(ctx, "own", metav1.DeleteOptions{})
	})
}

// resourceOf reads GROUP/VERSION/RESOURCE, or VERSION/RESOURCE.
func resourceOf(text string) schema.GroupVersionResource {
	words := strings.Split("/"+text, "/")
	last := len(words) - 1
	return schema.GroupVersionResource{Group: words[last-2], Version: words[last-1], Resource: words[last]}
}

func objectOf(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	var object map[string]any
	if err := yaml.Unmarshal([]byte(text), &object); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return &unstructured.Unstructured{Object: object}
}
