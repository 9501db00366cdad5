package admission

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/test/audit"
	"kube-queue.dev/kube-queue/test/clustertest"
)

// may asks the API server whether a user has a right.
func may(ctx context.Context, t *testing.T, user, ns, verb, resource string) bool {
	t.Helper()
	attributes := &authorizationv1.ResourceAttributes{Namespace: ns, Verb: verb}
	attributes.Group, attributes.Resource, _ = strings.Cut(resource, "/")
	attributes.Resource, attributes.Subresource, _ = strings.Cut(attributes.Resource, "/")
	attributes.Resource, attributes.Name, _ = strings.Cut(attributes.Resource, "=")
	review, err := core(t).AuthorizationV1().SubjectAccessReviews().Create(ctx, &authorizationv1.SubjectAccessReview{
		Spec: authorizationv1.SubjectAccessReviewSpec{User: user, Groups: []string{"system:authenticated"}, ResourceAttributes: attributes},
	}, metav1.CreateOptions{})
	must(t, err)
	return review.Status.Allowed
}

// Where the unit policy is not installed, only roles protect units.
func TestWithoutTheUnitPolicyEditorsMayOnlyReadUnits(t *testing.T) {
	ns := namespace(t)
	editor := person(t, ns, "edit")
	const name = "research"
	_, err := unitsAs(t, program(t, "job-extensions"), ns).Create(t.Context(), unit(name, "batch/v1", "Job"), metav1.CreateOptions{})
	wantError(t, err, "")
	_, err = cluster.Kubectl(t.Context(), "delete", "-f", filepath.Join(cluster.Repository, "deploy", "policies", "queueunits.yaml"))
	must(t, err)
	t.Cleanup(func() { must(t, cluster.Install(context.Background())) })
	eventually(t, "the role of editors permits no write", func(ctx context.Context) error {
		for _, right := range []struct{ verb, resource string }{
			{"create", "queueunits"}, {"patch", "queueunits"}, {"update", "queueunits"}, {"delete", "queueunits"}, {"deletecollection", "queueunits"},
			{"patch", "queueunits/status"}, {"update", "queueunits/status"},
		} {
			if may(ctx, t, "person-with-edit", ns, right.verb, "scheduling.x-k8s.io/"+right.resource) {
				return fmt.Errorf("it permits to %s %s", right.verb, right.resource)
			}
		}
		return nil
	})
	units := unitsAs(t, editor, ns)
	_, err = units.Patch(t.Context(), name, types.MergePatchType, []byte(`{"status": {"phase": "Dequeued", "attempts": 1}}`), metav1.PatchOptions{}, "status")
	wantError(t, err, `cannot patch resource "queueunits/status"`)
	_, err = units.Create(t.Context(), unit("by-hand", "example.com/v1", "Thing"), metav1.CreateOptions{})
	wantError(t, err, `cannot create resource "queueunits"`)
	wantError(t, units.Delete(t.Context(), name, metav1.DeleteOptions{}), `cannot delete resource "queueunits"`)
	if read, err := units.Get(t.Context(), name, metav1.GetOptions{}); err != nil || read.Status.Phase != v1alpha1.PhaseEnqueued {
		t.Errorf("the unit is %+v, error %v", read, err)
	}
}

// permission is a right that a user has or lacks.
type permission struct {
	user, ns, verbs, resource string
	want                      bool
}

// onJobs returns the rights of job-extensions on jobs of a kind.
func onJobs(t *testing.T, extensions string, kind heldKind) []permission {
	t.Helper()
	view, err := audit.ViewOf(kind.Group, kind.Version, kind.Resource)
	must(t, err)
	jobs := kind.resource.Group + "/" + kind.resource.Resource
	all := []permission{
		{extensions, "default", "get list watch patch", jobs, true},
		{extensions, "default", "create update delete deletecollection", jobs, false},
		{extensions, "default", "patch", jobs + "/status", view.ShowsQueuing},
		{extensions, "default", "get update", jobs + "/status", false},
	}
	if kind.Remains != "" {
		all = append(all, permission{extensions, "default", "list watch", kind.resource.Group + "/" + kind.Remains, true})
	}
	if related := kind.Related; related.Resource != "" {
		all = append(all, permission{extensions, "default", "list watch", related.Group + "/" + related.Resource, true})
	}
	return all
}

func TestTheProgramsMayDoWhatTheyMustAndNoMore(t *testing.T) {
	const (
		controller = "system:serviceaccount:kube-queue:kube-queue-controller"
		extensions = "system:serviceaccount:kube-queue:job-extensions"
		unit       = "scheduling.x-k8s.io/queueunits"
		queue      = "scheduling.x-k8s.io/queues"
		check      = "scheduling.x-k8s.io/admissionchecks"
		config     = "scheduling.x-k8s.io/provisioningrequestconfigs"
		quotaTree  = "scheduling.sigs.k8s.io/elasticquotatrees"
		revision   = "apps/controllerrevisions"
		lease      = "coordination.k8s.io/leases"
		read       = "get list watch"
		everything = "get list watch create update patch delete deletecollection"
	)
	tests := []permission{
		{controller, "default", read, unit, true},
		{controller, "default", "patch", unit + "/status", true},
		{controller, "default", "create update patch delete", unit, false},
		{controller, "kube-queue", "list watch create delete", queue, true},
		{controller, "kube-queue", "get update patch deletecollection", queue, false},
		{controller, "kube-queue", "patch", queue + "/status", true},
		{controller, "kube-queue", "update", queue + "/status", false},
		{controller, "default", "list watch", queue, true}, // they have no effect there, as an event reports
		{controller, "default", "get create update patch delete deletecollection", queue, false},
		{controller, "default", "patch", queue + "/status", false},
		{controller, "kube-queue", "list watch create delete", revision, true},
		{controller, "kube-queue", "get update patch deletecollection", revision, false},
		{controller, "default", everything, revision, false},
		{controller, "", "list watch", check, true},
		{controller, "", "get create update patch delete deletecollection decide", check, false},
		{controller, "kube-system", "list watch", quotaTree, true},
		{controller, "kube-system", "patch", quotaTree + "/status", true},
		{controller, "kube-system", "get create update patch delete", quotaTree, false},
		{controller, "", "list watch", "/namespaces", true},
		{controller, "", "get create update patch delete deletecollection", "/namespaces", false},
		{controller, "", "list", "/nodes", true},
		{controller, "", "get watch create update patch delete deletecollection", "/nodes", false},
		{controller, "default", "create", "/events", true},
		{controller, "default", "get list watch update patch delete", "/events", false},
		{controller, "default", everything, "events.k8s.io/events", false},
		{controller, "kube-queue", "get update", lease + "=kube-queue-controller", true},
		{controller, "kube-queue", "create", lease, true},
		{controller, "kube-queue", "list watch", lease + "=job-extensions", true},
		{controller, "kube-queue", "get update", lease + "=job-extensions", false},
		{controller, "default", "create", lease, false},
		{controller, "default", "list watch", "/resourcequotas", true},
		{controller, "default", "get create update patch delete deletecollection", "/resourcequotas", false},
		{controller, "default", "update patch", "/resourcequotas/status", false},
		{controller, "default", "list watch", "batch/jobs", true},
		{controller, "default", "get create update patch delete deletecollection", "batch/jobs", false},
		{controller, "default", "list watch", "/pods", true},
		{controller, "default", "get create update patch delete deletecollection", "/pods", false},
		{controller, "default", "list watch", "ray.io/rayclusters", true},
		{controller, "default", "list watch", "jobset.x-k8s.io/jobsets", true},
		{controller, "default", "get create update patch delete deletecollection", "jobset.x-k8s.io/jobsets", false},
		{controller, "default", "get create update patch delete deletecollection", "ray.io/rayclusters", false},
		{controller, "default", everything, "ray.io/rayjobs", false},
		{controller, "default", "list watch", "apps/daemonsets", true},
		{controller, "default", "get create update patch delete deletecollection", "apps/daemonsets", false},
		{controller, "", "create", "authentication.k8s.io/tokenreviews", true},
		{controller, "", "create", "authorization.k8s.io/subjectaccessreviews", true},
		{controller, "default", "create", "authorization.k8s.io/localsubjectaccessreviews", false},
		{controller, "default", everything, "/secrets", false},

		{extensions, "default", read + " create patch delete", unit, true},
		{extensions, "default", "patch", unit + "/status", true},
		{extensions, "default", everything, "sparkoperator.k8s.io/scheduledsparkapplications", false},
		{extensions, "default", everything, "argoproj.io/workflowtemplates", false},
		{extensions, "default", "list", "/pods", true},
		{extensions, "default", strings.Replace(everything, "list ", "", 1), "/pods", false},
		{extensions, "default", "list watch", "/limitranges", true},
		{extensions, "default", "get create update patch delete deletecollection", "/limitranges", false},
		{extensions, "", "list watch", "scheduling.k8s.io/priorityclasses", true},
		{extensions, "", "list watch", "node.k8s.io/runtimeclasses", true},
		{extensions, "", "get create update patch delete deletecollection", "node.k8s.io/runtimeclasses", false},
		{extensions, "default", "get create patch", "/events", true},
		{extensions, "default", "list watch update delete", "/events", false},
		{extensions, "kube-queue", "get update", lease + "=job-extensions", true},
		{extensions, "kube-queue", "get", lease + "=kube-queue-controller", true}, // whether the controller runs
		{extensions, "kube-queue", "update patch delete", lease + "=kube-queue-controller", false},
		{extensions, "kube-queue", everything, queue, false},
		{extensions, "", "list watch", check, true},
		{extensions, "", "get create update patch delete deletecollection decide", check, false},
		{extensions, "", "list watch", config, true},
		{extensions, "", "get create update patch delete deletecollection", config, false},
		{extensions, "default", "get list watch create delete", "autoscaling.x-k8s.io/provisioningrequests", true},
		{extensions, "default", "update patch deletecollection", "autoscaling.x-k8s.io/provisioningrequests", false},
		{extensions, "default", "list create delete", "/podtemplates", true},
		{extensions, "default", "get watch update patch deletecollection", "/podtemplates", false},
		{extensions, "kube-system", everything, quotaTree, false},
		{extensions, "", "create", "authentication.k8s.io/tokenreviews", true},
		{extensions, "", "create", "authorization.k8s.io/subjectaccessreviews", true},
		{extensions, "default", "create", "authorization.k8s.io/localsubjectaccessreviews", false},
		{extensions, "default", everything, "/secrets", false},
		{extensions, "default", everything, "/configmaps", false},
	}
	for _, kind := range heldKinds(t) {
		tests = append(tests, onJobs(t, extensions, kind)...)
	}
	byWebhook := cluster.HoldsBy == clustertest.HoldByWebhook
	for _, own := range []string{"admissionregistration.k8s.io/mutatingwebhookconfigurations=kube-queue-hold", "admissionregistration.k8s.io/validatingwebhookconfigurations=kube-queue-trees"} {
		resource, _, _ := strings.Cut(own, "=")
		tests = append(tests,
			permission{extensions, "", read + " patch", own, byWebhook},
			permission{extensions, "", "create update delete", own, false},
			permission{extensions, "", everything, resource, false})
	}
	tests = append(tests,
		permission{extensions, "kube-queue", read + " patch", "/secrets=job-extensions-webhook", byWebhook},
		permission{extensions, "kube-queue", "create update delete", "/secrets=job-extensions-webhook", false},
		permission{extensions, "kube-queue", everything, "/secrets", false},
		permission{controller, "kube-queue", read + " create patch", "/secrets=kube-queue-reviews-proof", !byWebhook}, // otherwise reviews are off
		permission{controller, "kube-queue", "update delete", "/secrets=kube-queue-reviews-proof", false},
		permission{controller, "kube-queue", everything, "/secrets", false},
		permission{extensions, "kube-queue", everything, "/secrets=kube-queue-reviews-proof", false})
	for _, test := range tests {
		for verb := range strings.FieldsSeq(test.verbs) {
			if got := may(t.Context(), t, test.user, test.ns, verb, test.resource); got != test.want {
				t.Errorf("%s may %s %s in %q: %v, want %v", test.user, verb, test.resource, test.ns, got, test.want)
			}
		}
	}
}

func TestWhoeverMayViewOrEditANamespaceMayDoSoWithItsUnits(t *testing.T) {
	ns := namespace(t)
	person(t, ns, "view")
	person(t, ns, "edit")
	for _, test := range []struct {
		role, verbs, resource string
		want                  bool
	}{
		{"view", "get list watch", "queueunits", true},
		{"view", "get list watch", "queues", true},
		{"view", "create patch delete", "queueunits", false},
		{"view", "patch", "queueunits/status", false},
		{"edit", "get list watch create patch delete", "queueunits", true},
		{"edit", "patch", "queueunits/status", true},
		{"edit", "create update patch delete", "queues", false},
		{"view", "get list watch", "admissionchecks", true},
		{"view", "get list watch", "provisioningrequestconfigs", true},
		{"edit", "create update patch delete decide", "admissionchecks", false},
	} {
		for verb := range strings.FieldsSeq(test.verbs) {
			// A controller aggregates the roles asynchronously.
			eventually(t, fmt.Sprintf("%s may %s %s: %v", test.role, verb, test.resource, test.want), func(ctx context.Context) error {
				if got := may(ctx, t, "person-with-"+test.role, ns, verb, "scheduling.x-k8s.io/"+test.resource); got != test.want {
					return fmt.Errorf("%v", got)
				}
				return nil
			})
		}
	}
}
