package admission

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	v1alpha1 "kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/test/docs"
)

// owner creates a user who may read units, patch their status and decide the checks with these names, or all checks
// if there are none. It waits until the rights are in effect.
func owner(t *testing.T, name string, checks ...string) *rest.Config {
	t.Helper()
	ours := []string{v1alpha1.SchemeGroupVersion.Group}
	return bound(t, name, []rbacv1.PolicyRule{
		{APIGroups: ours, Resources: []string{"queueunits", "admissionchecks"}, Verbs: []string{"get", "list", "watch"}},
		{APIGroups: ours, Resources: []string{"queueunits/status"}, Verbs: []string{"patch"}},
		{APIGroups: ours, Resources: []string{"admissionchecks"}, ResourceNames: checks, Verbs: []string{"decide"}},
	})
}

// bound creates a user with these rules in all namespaces. It waits until they are in effect.
func bound(t *testing.T, user string, rules []rbacv1.PolicyRule) *rest.Config {
	t.Helper()
	name := metav1.ObjectMeta{Name: user}
	roles := core(t).RbacV1()
	_, err := roles.ClusterRoles().Create(t.Context(), &rbacv1.ClusterRole{ObjectMeta: name, Rules: rules}, metav1.CreateOptions{})
	must(t, err)
	if _, err := roles.ClusterRoleBindings().Create(t.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: name,
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: user},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
	}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, err := range []error{
			roles.ClusterRoleBindings().Delete(context.Background(), user, metav1.DeleteOptions{}),
			roles.ClusterRoles().Delete(context.Background(), user, metav1.DeleteOptions{}),
		} {
			if err != nil {
				t.Error(err)
			}
		}
	})
	awaitRight(t, user, "", rules[0])
	return cluster.ConfigAs(user)
}

// checks returns a merge patch of the status with these fields and these entries, such as "a Ready" or
// "a Ready because of b".
func checks(fields string, entries ...string) string {
	list := []map[string]any{}
	for _, text := range entries {
		words := strings.SplitN(text, " ", 3)
		entry := map[string]any{"name": words[0], "state": words[1], "lastTransitionTime": "2026-01-01T00:00:00Z"}
		if len(words) == 3 {
			entry["message"] = words[2]
		}
		list = append(list, entry)
	}
	text, err := json.Marshal(list)
	if err != nil {
		panic(err) // strings only
	}
	return `{"status": {` + fields + `"admissionChecks": ` + string(text) + `}}`
}

// reserve creates a unit that has reserved quota, with checks a, b and c.
func reserve(t *testing.T, who map[string]*rest.Config, ns, name, kind string) {
	t.Helper()
	makeUnit(t, who, ns, unit(name, "batch/v1", kind))
	patchStatus(t, who["controller"], ns, name, checks(reserved, "a Pending", "b Pending", "c Pending"))
}

// reserved are the fields of a unit that has reserved quota.
const reserved = `"phase": "Reserved", "reason": "AdmissionCheckPending", "message": "waits", "quota": "root/a", "queue": "root-a", "reservations": 1,
	"conditions": [{"type": "Evicted", "status": "False", "reason": "Requeued", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"}],`

func patchStatus(t *testing.T, config *rest.Config, ns, name, patch string) {
	t.Helper()
	_, err := unitsAs(t, config, ns).Patch(t.Context(), name, types.MergePatchType, []byte(patch), metav1.PatchOptions{}, "status")
	must(t, err)
}

func TestWhoMayDecideAnAdmissionCheck(t *testing.T) {
	ns := namespace(t)
	who := actors(t, ns)
	who["owner of a and b"] = owner(t, "owner-of-a-and-b", "a", "b")
	who["owner of all"] = owner(t, "owner-of-all")
	const (
		notYours = "cannot decide these admission checks: "
		grant    = "ask an administrator to grant the verb decide on admissionchecks.scheduling.x-k8s.io by these names"
		entries  = "entries of status.admissionChecks cannot be added, removed or renamed"
	)
	decided := checks("", "a Ready", "b Pending", "c Pending")
	for _, kind := range []string{"Job", "Thing"} {
		name := "of-a-" + strings.ToLower(kind)
		reserve(t, who, ns, name, kind)
		for _, test := range []struct{ actor, patch, says string }{
			{"owner of a and b", decided, ""},
			{"owner of a and b", checks("", "a Pending nearly there", "b Pending", "c Pending"), ""},
			{"owner of a and b", checks("", "a Retry", "b Rejected", "c Pending"), ""},
			{"owner of a and b", checks("", "c Pending", "b Ready", "a Pending"), ""},
			{"owner of a and b", checks("", "a Pending", "b Pending", "c Pending"), ""},
			{"owner of a and b", checks("", "a Pending", "b Pending", "c Ready"), "owner-of-a-and-b " + notYours + "c; " + grant},
			{"owner of a and b", checks("", "a Ready", "b Pending", "c Ready"), notYours + "a, c"},
			{"owner of a and b", checks("", "a Ready", "b Ready", "c Pending no"), notYours + "a, b, c"},
			{"owner of a and b", checks("", "a Ready", "b Ready", "c Pending no"), "decide at most two of them in a request"},
			{"owner of a and b", checks("", "a Ready", "b Pending"), entries},
			{"owner of a and b", checks("", "a Ready", "b Pending", "c Pending", "d Pending"), entries},
			{"owner of a and b", checks("", "a Ready", "b Pending", "d Pending"), entries},
			{"owner of a and b", checks(""), entries},
			{"owner of a and b", `{"status": {"admissionChecks": null}}`, entries},
			{"owner of a and b", checks("", "a Done", "b Pending", "c Pending"), "supported values"},
			{"owner of all", checks("", "a Ready", "b Ready", "c Retry"), ""},
			{"owner of all", checks("", "a Ready", "b Ready", "c Ready", "d Ready"), entries},
			{"administrator", checks("", "a Ready", "b Ready", "c Retry"), ""},
			{"administrator", checks("", "a Ready"), entries},
			{"editor", decided, "person-with-kube-queue-editor " + notYours + "a; " + grant},
			{"job-extensions", decided, ""},
			{"controller", checks("", "d Pending"), ""},
		} {
			t.Run(fmt.Sprintf("%s patches the unit of a %s with %s", test.actor, kind, test.patch), func(t *testing.T) {
				_, err := unitsAs(t, who[test.actor], ns).Patch(t.Context(), name, types.MergePatchType, []byte(test.patch),
					metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}}, "status")
				wantError(t, err, test.says)
			})
		}
	}
}

// The rest of the status belongs to kube-queue.
func TestADecisionChangesNothingElse(t *testing.T) {
	ns := namespace(t)
	who := actors(t, ns)
	who["owner"] = owner(t, "owner-of-a", "a")
	reserve(t, who, ns, "of-a-job", "Job")
	reserve(t, who, ns, "by-hand", "Thing")
	for field, value := range map[string]string{
		"phase": `"Dequeued"`, "reason": `"Other"`, "message": `"other"`, "quota": `"root/b"`, "queue": `null`, "attempts": `1`, "reservations": `2`,
		"dequeueTime": `"2026-01-01T00:00:00.000000Z"`, "evictedFor": `"uid"`, "requeueState": `{"count": 1}`, "conditions": `[]`,
	} {
		for name, says := range map[string]string{
			"of-a-job": "or, to decide an admission check, change nothing but its entry in status.admissionChecks",
			"by-hand":  "only phases Succeeded and Failed can be set",
		} {
			t.Run(field+" of the unit "+name, func(t *testing.T) {
				patch := checks(`"`+field+`": `+value+`, `, "a Ready", "b Pending", "c Pending")
				_, err := unitsAs(t, who["owner"], ns).Patch(t.Context(), name, types.MergePatchType, []byte(patch),
					metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}}, "status")
				wantError(t, err, says)
			})
		}
	}
	ended := checks(`"phase": "Failed", `, "a Ready", "b Pending", "c Pending")
	_, err := unitsAs(t, who["owner"], ns).Patch(t.Context(), "by-hand", types.MergePatchType, []byte(ended), metav1.PatchOptions{}, "status")
	wantError(t, err, "keep the other fields, which kube-queue sets")
	_, err = unitsAs(t, who["owner"], ns).Patch(t.Context(), "of-a-job", types.MergePatchType, []byte(`{"spec": {"priority": 7}}`), metav1.PatchOptions{})
	wantError(t, err, "cannot patch resource")
}

func TestAUnitWithoutChecksHasNothingToDecide(t *testing.T) {
	ns := namespace(t)
	who := actors(t, ns)
	who["owner"] = owner(t, "owner-of-a", "a")
	makeUnit(t, who, ns, unit("new", "batch/v1", "Job"))
	for patch, says := range map[string]string{
		checks("", "a Ready"):              "entries of status.admissionChecks cannot be added",
		`{"status": {"message": "hello"}}`: "only kube-queue writes the status of the QueueUnit of a Job; change the Job instead",
	} {
		_, err := unitsAs(t, who["owner"], ns).Patch(t.Context(), "new", types.MergePatchType, []byte(patch), metav1.PatchOptions{}, "status")
		wantError(t, err, says)
	}
}

// The unit has as many large entries as the schema allows, and is itself large.
func TestADecisionIsCheckedAtTheMaximumSize(t *testing.T) {
	ns := namespace(t)
	who := actors(t, ns)
	who["owner"] = owner(t, "owner-of-two", "check-0", "check-15")
	who["owner of all"] = owner(t, "owner-of-all")
	u := unit("large", "batch/v1", "Job")
	u.Spec.PodSets = podSets(64)
	makeUnit(t, who, ns, u)
	patch := func(states map[int]v1alpha1.CheckState) string {
		status := v1alpha1.QueueUnitStatus{Phase: "Reserved", Quota: "root/a"}
		for i := range 16 {
			check := v1alpha1.AdmissionCheckState{Name: fmt.Sprint("check-", i), State: states[-1], Message: strings.Repeat("x", 1024)}
			if state, is := states[i]; is {
				check.State = state
			}
			for j := range 64 {
				check.PodSetUpdates = append(check.PodSetUpdates, v1alpha1.PodSetUpdate{
					Name: fmt.Sprint("set-", j), Annotations: map[string]string{"example.com/reservation": strings.Repeat("x", 400)},
				})
			}
			status.AdmissionChecks = append(status.AdmissionChecks, check)
		}
		text, err := json.Marshal(map[string]any{"status": status})
		must(t, err)
		return string(text)
	}
	patchStatus(t, who["controller"], ns, "large", patch(map[int]v1alpha1.CheckState{-1: v1alpha1.CheckPending}))
	for _, test := range []struct {
		actor  string
		states map[int]v1alpha1.CheckState
		says   string
	}{
		{"owner", map[int]v1alpha1.CheckState{-1: v1alpha1.CheckPending, 0: v1alpha1.CheckReady, 15: v1alpha1.CheckRetry}, ""},
		{"owner", map[int]v1alpha1.CheckState{-1: v1alpha1.CheckPending, 14: v1alpha1.CheckReady}, "check-14; ask an administrator"},
		{"owner", map[int]v1alpha1.CheckState{-1: v1alpha1.CheckReady}, "at most two of them in a request"},
		{"owner of all", map[int]v1alpha1.CheckState{-1: v1alpha1.CheckReady}, ""},
	} {
		_, err := unitsAs(t, who[test.actor], ns).Patch(t.Context(), "large", types.MergePatchType, []byte(patch(test.states)),
			metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}}, "status")
		wantError(t, err, test.says)
	}
}

func TestADecisionByServerSideApplyLeavesTheOtherEntries(t *testing.T) {
	ns := namespace(t)
	who := actors(t, ns)
	units := unitsAs(t, owner(t, "owner-of-b", "b"), ns)
	reserve(t, who, ns, "mine", "Job")
	apply := func(version, state, name string) error {
		_, err := units.Patch(t.Context(), "mine", types.ApplyPatchType, []byte(`{"apiVersion": "scheduling.x-k8s.io/v1alpha1", "kind": "QueueUnit",
			"metadata": {"name": "mine", "resourceVersion": "`+version+`"},
			"status": {"admissionChecks": [{"name": "`+name+`", "state": "`+state+`", "message": "decided"}]}}`),
			metav1.PatchOptions{FieldManager: "example.com/b", Force: ptr.To(true)}, "status")
		return err
	}
	read, err := units.Get(t.Context(), "mine", metav1.GetOptions{})
	wantError(t, err, "")
	wantError(t, apply(read.ResourceVersion, "Ready", "d"), "cannot be added, removed or renamed")
	wantError(t, apply(read.ResourceVersion, "Ready", "b"), "")
	wantError(t, apply(read.ResourceVersion, "Retry", "b"), "the object has been modified")
	read, err = units.Get(t.Context(), "mine", metav1.GetOptions{})
	wantError(t, err, "")
	var states []string
	for _, check := range read.Status.AdmissionChecks {
		states = append(states, check.Name+" "+string(check.State))
	}
	if got := strings.Join(states, ", "); got != "a Pending, b Ready, c Pending" {
		t.Errorf("the checks are %s", got)
	}
}

// The role and the patch are from the page.
func TestTheControllerOfThePageDecidesItsCheck(t *testing.T) {
	page, err := os.ReadFile("../../../docs/concepts/admission-checks.md")
	must(t, err)
	read, err := docs.ReadPage(os.DirFS("../../.."), "docs/concepts/admission-checks.md")
	must(t, err)
	if len(read.Manifests) != 2 {
		t.Fatalf("the page has %d manifests, want a check and a role", len(read.Manifests))
	}
	kubectl(t, read.Manifests[0], "create", "-f", "-")
	t.Cleanup(func() { _, _ = cluster.Kubectl(context.Background(), "delete", "admissioncheck", "budget") })
	var role rbacv1.ClusterRole
	must(t, yaml.UnmarshalStrict([]byte(read.Manifests[1]), &role))
	ns := namespace(t)
	who := actors(t, ns)
	units := unitsAs(t, bound(t, role.Name, role.Rules), ns)

	makeUnit(t, who, ns, unit("mine", "batch/v1", "Job"))
	patchStatus(t, who["controller"], ns, "mine", checks(reserved, "budget Pending"))
	patchStatus(t, who["controller"], ns, "mine", `{"status": {"admissionChecks": [
		{"name": "budget", "state": "Pending", "lastTransitionTime": "2026-11-25T11:59:58Z"},
		{"name": "license", "state": "Pending", "lastTransitionTime": "2026-11-25T11:59:58Z"}]}}`)
	stored, err := units.Get(t.Context(), "mine", metav1.GetOptions{})
	wantError(t, err, "")
	_, block, _ := strings.Cut(string(page), "```json\n")
	patch, _, _ := strings.Cut(block, "```")
	_, err = units.Patch(t.Context(), "mine", types.MergePatchType, []byte(patch), metav1.PatchOptions{}, "status")
	wantError(t, err, "the object has been modified")
	patch = strings.Replace(patch, "4711", stored.ResourceVersion, 1)
	written, err := units.Patch(t.Context(), "mine", types.MergePatchType, []byte(patch), metav1.PatchOptions{}, "status")
	wantError(t, err, "")
	if state := written.Status.AdmissionChecks[0].State; state != v1alpha1.CheckReady {
		t.Errorf("the check is %s", state)
	}
	_, err = units.Patch(t.Context(), "mine", types.JSONPatchType,
		[]byte(`[{"op": "replace", "path": "/status/admissionChecks/1/state", "value": "Ready"}]`), metav1.PatchOptions{}, "status")
	wantError(t, err, "budget-controller cannot decide these admission checks: license")
}

func TestWhatAnAdmissionCheckMaySpecify(t *testing.T) {
	for name, test := range map[string]struct{ name, spec, says string }{
		"a controller":                  {"a", `{controllerName: example.com/a}`, ""},
		"everything":                    {"a", `{controllerName: example.com/a, timeout: 1h30m, parameters: {apiGroup: example.com, kind: Budget, name: a}}`, ""},
		"the longest name":              {strings.Repeat("a", 63), `{controllerName: example.com/a}`, ""},
		"a name that is too long":       {strings.Repeat("a", 64), `{controllerName: example.com/a}`, "must be at most 63 characters long"},
		"no controller":                 {"a", `{}`, "spec.controllerName: Required value"},
		"an empty controller":           {"a", `{controllerName: ""}`, "spec.controllerName"},
		"parameters without a name":     {"a", `{controllerName: example.com/a, parameters: {kind: Budget}}`, "spec.parameters.name: Required value"},
		"a timeout below a second":      {"a", `{controllerName: example.com/a, timeout: 900ms}`, "timeout must be at least 1s"},
		"a timeout that is no duration": {"a", `{controllerName: example.com/a, timeout: soon}`, "spec.timeout"},
		"an unknown field":              {"a", `{controllerName: example.com/a, timeuot: 1s}`, `unknown field "spec.timeuot"`},
	} {
		t.Run(name, func(t *testing.T) {
			manifest := "{apiVersion: scheduling.x-k8s.io/v1alpha1, kind: AdmissionCheck, metadata: {name: " + test.name + "}, spec: " + test.spec + "}"
			_, err := cluster.KubectlWith(t.Context(), manifest, "create", "--dry-run=server", "-f", "-")
			wantError(t, err, test.says)
		})
	}
}

func TestTheControllerOfACheckIsImmutable(t *testing.T) {
	kubectl(t, "{apiVersion: scheduling.x-k8s.io/v1alpha1, kind: AdmissionCheck, metadata: {name: fixed}, spec: {controllerName: example.com/a}}", "create", "-f", "-")
	t.Cleanup(func() {
		_, err := cluster.Kubectl(context.Background(), "delete", "admissioncheck", "fixed")
		must(t, err)
	})
	_, err := cluster.Kubectl(t.Context(), "patch", "admissioncheck", "fixed", "--type=merge", "-p", `{"spec": {"controllerName": "example.com/b"}}`)
	wantError(t, err, "controllerName is immutable; create another AdmissionCheck")
	kubectl(t, "", "patch", "admissioncheck", "fixed", "--type=merge", "-p", `{"spec": {"timeout": "1m"}}`)
}
