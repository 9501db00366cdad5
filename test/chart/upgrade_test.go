package chart

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"kube-queue.dev/kube-queue/test/require"
)

// installed is an API server that knows the kinds of the chart and has these objects, by path.
func installed(t *testing.T, objects map[string]any) (kubeconfig string) {
	t.Helper()
	answers := map[string]any{"/version": map[string]any{"major": "1", "minor": "36", "gitVersion": "v1.36.0"},
		"/api": metav1.APIVersions{TypeMeta: metav1.TypeMeta{Kind: "APIVersions"}, Versions: []string{"v1"}}}
	groups := metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"}}
	lists := map[schema.GroupVersion]*metav1.APIResourceList{}
	for _, o := range append(render(t), object{Unstructured: unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding"}}}) {
		gvk := o.GroupVersionKind()
		gv := gvk.GroupVersion()
		if lists[gv] == nil {
			lists[gv] = &metav1.APIResourceList{TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}, GroupVersion: gv.String()}
			if gv.Group == "" {
				answers["/api/v1"] = lists[gv]
			} else {
				answers["/apis/"+gv.String()] = lists[gv]
				version := metav1.GroupVersionForDiscovery{GroupVersion: gv.String(), Version: gv.Version}
				groups.Groups = append(groups.Groups, metav1.APIGroup{Name: gv.Group, Versions: []metav1.GroupVersionForDiscovery{version}, PreferredVersion: version})
			}
		}
		plural, _ := meta.UnsafeGuessKindToResource(gvk)
		lists[gv].APIResources = append(lists[gv].APIResources, metav1.APIResource{Name: plural.Resource, Kind: gvk.Kind, Namespaced: o.GetNamespace() != ""})
	}
	answers["/apis"] = groups
	maps.Copy(answers, objects)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		answer, there := answers[r.URL.Path]
		if !there || r.Method != http.MethodGet {
			w.WriteHeader(http.StatusNotFound)
			answer = metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure, Reason: metav1.StatusReasonNotFound, Code: http.StatusNotFound}
		}
		if err := json.NewEncoder(w).Encode(answer); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(server.Close)
	kubeconfig = filepath.Join(t.TempDir(), "kubeconfig")
	require.NoError(t, os.WriteFile(kubeconfig, fmt.Appendf(nil, `{clusters: [{name: a, cluster: {server: "%s"}}], contexts: [{name: a, context: {cluster: a}}], current-context: a}`, server.URL), 0o600))
	return kubeconfig
}

var minorVersion = regexp.MustCompile(`(?m)^version: ([0-9]+[.][0-9]+)`)

func TestAnUpgradeTrustsTheOperatorsThatItFinds(t *testing.T) {
	const policy = "/apis/admissionregistration.k8s.io/v1/mutatingadmissionpolicies/kube-queue-managed-namespace"
	const listed = `--set-json=managedNamespaces.operators=[{"namespace": "mine", "serviceAccount": "ray", "kinds": ["rayjob"]}]`
	version := minorVersion.FindStringSubmatch(read(t, chart+"/Chart.yaml"))[1]
	before := func(annotations map[string]any) map[string]any {
		account := func(namespace, name string) map[string]any {
			return map[string]any{"metadata": map[string]any{"name": namespace}, "subjects": []any{
				map[string]any{"kind": "ServiceAccount", "namespace": namespace, "name": name}, map[string]any{"kind": "Group", "name": "system:serviceaccount:ray-system:kuberay-operator"}}}
		}
		objects := map[string]any{"/apis/rbac.authorization.k8s.io/v1/clusterrolebindings": map[string]any{"kind": "ClusterRoleBindingList",
			"apiVersion": "rbac.authorization.k8s.io/v1", "metadata": map[string]any{}, "items": []any{
				account("kuberay-system", "kuberay-operator"), account("other", "kuberay-operator"), map[string]any{"metadata": map[string]any{"name": "nobody"}}}}}
		if annotations != nil {
			owned := map[string]any{"meta.helm.sh/release-name": "queue", "meta.helm.sh/release-namespace": "kube-queue"}
			maps.Copy(owned, annotations)
			objects[policy] = map[string]any{"apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingAdmissionPolicy", "metadata": map[string]any{
				"name": "kube-queue-managed-namespace", "annotations": owned, "labels": map[string]any{"app.kubernetes.io/managed-by": "Helm"}}}
		}
		return objects
	}
	const fence, found = "kube-queue/fence-warns-in", "kube-queue/operators-found-in"
	none, asFound, asListed := "[]", "[kuberay-system/kuberay-operator]", "[mine/ray]"
	for _, test := range []struct {
		name   string
		before map[string]any // annotations of the installed policy; nil if there is none
		args   []string
		// operators are those of RayJobs, noted is what is recorded for the next upgrade, and actions is what the
		// fence does.
		operators, noted, actions string
	}{
		{"a new installation", nil, nil, none, "", "Deny"},
		{"an upgrade from before the fence", map[string]any{}, nil, asFound, version, "Warn"},
		{"an upgrade from operators with names", map[string]any{fence: ""}, nil, asFound, version, "Deny"},
		{"the next upgrade within the minor version", map[string]any{fence: "", found: version}, nil, asFound, version, "Deny"},
		{"an upgrade to the next minor version", map[string]any{fence: "0.1", found: "0.1"}, nil, none, "0.1", "Deny"},
		{"an upgrade of a new installation", map[string]any{fence: "", found: ""}, nil, none, "", "Deny"},
		{"an upgrade with a list", map[string]any{fence: ""}, []string{listed}, asListed, "", "Deny"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			args := append([]string{"--dry-run=server", "--disable-openapi-validation", "--kubeconfig", installed(t, before(test.before))}, test.args...)
			rendered := render(t, args...)
			var operators []string
			for _, subject := range kind(rendered, "ClusterRoleBinding")["kube-queue-operator-rayjob"].list("subjects") {
				operators = append(operators, fmt.Sprintf("%s/%s", subject["namespace"], subject["name"]))
			}
			if got := fmt.Sprint(operators); got != test.operators {
				t.Errorf("operators are %v, want %s", got, test.operators)
			}
			policy := the(t, rendered, "MutatingAdmissionPolicy", "kube-queue-managed-namespace")
			if got := policy.GetAnnotations()[found]; got != test.noted {
				t.Errorf("%q is noted, want %q", got, test.noted)
			}
			actions, _, err := unstructured.NestedStringSlice(the(t, rendered, "ValidatingAdmissionPolicyBinding", "kube-queue-fence-rayjob").Object, "spec", "validationActions")
			if err != nil || !slices.Contains(actions, test.actions) {
				t.Errorf("the fence does %v, %v; want %s", actions, err, test.actions)
			}
			out, err := run(t, append([]string{"install", "queue", chart, "--namespace", "kube-queue"}, args...)...)
			require.NoError(t, err)
			_, notes, _ := strings.Cut(out, "\nNOTES:\n")
			const advice = "\n  - {namespace: kuberay-system, serviceAccount: kuberay-operator, kinds: [rayjob, raycluster]}\n"
			if got, want := strings.Contains(notes, advice), test.operators == asFound; got != want {
				t.Errorf("the notes advise to list it: %t, want %t\n%s", got, want, notes)
			}
		})
	}
}
