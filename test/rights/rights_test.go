package rights

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"kube-queue.dev/kube-queue/test/require"
)

const line = `{"stage":"ResponseComplete","verb":"%v","userAgent":"%a","requestURI":"/apis/x","user":{"username":"%u"},"objectRef":{%o},"annotations":{"authorization.k8s.io/decision":"%d"}}`

func entryOf(verb, agent, user, object, decision string) string {
	return strings.NewReplacer("%v", verb, "%a", agent, "%u", user, "%o", object, "%d", decision).Replace(line) + "\n"
}

const (
	extensions = "system:serviceaccount:kube-queue:job-extensions"
	jobs       = `"resource":"jobs","apiGroup":"batch","namespace":"team","name":"one"`
	lease      = `"resource":"leases","apiGroup":"coordination.k8s.io","namespace":"kube-queue","name":"job-extensions"`
)

func TestOnlyTheProgramsOwnRequestsCount(t *testing.T) {
	use, err := Read(strings.NewReader(
		entryOf("patch", "job-extensions/v1", extensions, jobs, "allow") +
			entryOf("patch", "job-extensions/v1", extensions, strings.Replace(jobs, "one", "two", 1), "allow") +
			entryOf("update", "job-extensions/v1", extensions, lease, "allow") +
			entryOf("patch", "job-extensions/v1", extensions, jobs+`,"subresource":"status"`, "allow") +
			entryOf("delete", "e2e.test/v0", extensions, jobs, "allow") +
			entryOf("delete", "job-extensions/v1", "admin", jobs, "allow") +
			`{"cut off"`))
	require.NoError(t, err)
	want := []Right{
		{Program: "job-extensions", Verb: "patch", Group: "batch", Resource: "jobs"},
		{Program: "job-extensions", Verb: "patch", Group: "batch", Resource: "jobs/status"},
		{Program: "job-extensions", Verb: "update", Group: "coordination.k8s.io", Resource: "leases", Namespace: "kube-queue", Name: "job-extensions"},
	}
	if d := Compare(want, use.Rights); len(use.Rights) != len(want) || len(d.Unused)+len(d.Uncovered) > 0 {
		t.Errorf("got %v, want %v", use.Rights, want)
	}
}

func TestCollectFailsAfterARefusal(t *testing.T) {
	log := filepath.Join(t.TempDir(), "audit.log")
	write(t, log, entryOf("delete", "job-extensions/v1", extensions, jobs, "forbid"))
	require.ErrorSays(t, Collect(log, ""), "delete /apis/x (line 1)")
}

func TestRefusalsWithoutRolesAreIgnored(t *testing.T) {
	const role = `"resource":"roles","apiGroup":"rbac.authorization.k8s.io","namespace":"kube-queue","name":"job-extensions"`
	refused := entryOf("get", "job-extensions/v1", extensions, lease, "forbid")
	gone, back := entryOf("delete", "helm/v4", "admin", role, "allow"), entryOf("create", "helm/v4", "admin", role, "allow")
	for _, test := range []struct {
		log  string
		want int
	}{{gone + refused, 0}, {gone + back + refused, 1}, {refused + gone, 1}, {strings.Replace(gone, "job-extensions", "other", 1) + refused, 1}} {
		use, err := Read(strings.NewReader(test.log))
		if err != nil || len(use.Forbidden) != test.want {
			t.Errorf("%v, %v of\n%s", use.Forbidden, err, test.log)
		}
	}
}

func TestAWatchWithInitialEventsIsAList(t *testing.T) {
	const pods = `"resource":"pods","namespace":"team"`
	watch := entryOf("watch", "job-extensions/v1", extensions, pods, "allow")
	for log, want := range map[string]string{
		watch: "[job-extensions: watch pods]",
		strings.Replace(watch, "/apis/x", "/api/v1/pods?sendInitialEvents=true&watch=true", 1): "[job-extensions: list pods job-extensions: watch pods]",
	} {
		if use, err := Read(strings.NewReader(log)); err != nil || fmt.Sprint(use.Rights) != want {
			t.Errorf("%v, %v; want %s", use.Rights, err, want)
		}
	}
}

func TestAnApplyThatCreatesIsACreation(t *testing.T) {
	apply := entryOf("patch", "job-extensions/v1", extensions, jobs, "allow")
	for code, want := range map[string]string{
		"200": "[job-extensions: patch jobs.batch]", "201": "[job-extensions: create jobs.batch job-extensions: patch jobs.batch]",
	} {
		log := strings.Replace(apply, `"annotations"`, `"responseStatus":{"code":`+code+`},"annotations"`, 1)
		if use, err := Read(strings.NewReader(log)); err != nil || fmt.Sprint(use.Rights) != want {
			t.Errorf("%v, %v; want %s", use.Rights, err, want)
		}
	}
}

const roles = `
kind: Role
metadata: {name: job-extensions, namespace: kube-queue}
rules:
- {apiGroups: [coordination.k8s.io], resources: [leases], resourceNames: [job-extensions], verbs: [get, update]}
---
kind: RoleBinding
metadata: {name: job-extensions, namespace: kube-queue}
roleRef: {kind: Role, name: job-extensions}
subjects: [{kind: ServiceAccount, name: job-extensions, namespace: kube-queue}]
---
kind: ClusterRole
metadata: {name: jobs}
rules:
- {apiGroups: [batch], resources: [jobs], verbs: [patch]}
---
kind: ClusterRoleBinding
metadata: {name: jobs}
roleRef: {kind: ClusterRole, name: jobs}
subjects: [{kind: ServiceAccount, name: job-extensions, namespace: kube-queue}]
---
kind: ClusterRole
metadata: {name: for-people}
rules:
- {apiGroups: [""], resources: [secrets], verbs: [get]}
`

func TestUnusedRightsAreReported(t *testing.T) {
	manifests, lists, log := t.TempDir(), t.TempDir(), filepath.Join(t.TempDir(), "audit.log")
	write(t, filepath.Join(manifests, "roles.yaml"), roles)
	granted, err := Granted(manifests)
	require.NoError(t, err)
	if len(granted) != 3 {
		t.Errorf("granted are %v", granted)
	}
	for _, text := range []string{
		entryOf("get", "job-extensions/v1", extensions, lease, "allow"),
		entryOf("patch", "job-extensions/v1", extensions, jobs, "allow") + entryOf("get", "job-extensions/v1", extensions, jobs, "allow"),
	} {
		write(t, log, text)
		require.NoError(t, Collect(log, lists))
	}
	used, n, err := Collected(lists)
	if err != nil || n != 2 {
		t.Fatal(n, err)
	}
	want := "granted and never used: job-extensions: update leases.coordination.k8s.io job-extensions in kube-queue\n" +
		"used and not granted: job-extensions: get jobs.batch\n"
	if got := Compare(granted, used).String(); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

func TestTheManifestsGrantSomethingToEachProgram(t *testing.T) {
	granted, err := Granted("../../deploy/rbac")
	require.NoError(t, err)
	has := map[string]bool{}
	for _, r := range granted {
		has[r.Program] = true
		if strings.Contains(r.Verb+r.Resource+r.Group, "*") {
			t.Errorf("%v: rights are granted one by one", r)
		}
	}
	for _, program := range Programs {
		if !has[program] {
			t.Errorf("%s may do nothing", program)
		}
	}
}

func write(t *testing.T, file, text string) {
	t.Helper()
	require.NoError(t, os.WriteFile(file, []byte(text), 0o644))
}
