package command

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kube-queue.dev/kube-queue/test/require"
)

// four are the jobs of docs/tasks/see-why-a-job-waits.md.
const four = `
{apiVersion: v1, kind: Namespace, metadata: {name: research}}
---
{apiVersion: v1, kind: Namespace, metadata: {name: other}}
---
apiVersion: batch/v1
kind: Job
metadata: {name: train-c, namespace: research, uid: c, annotations: {scheduling.x-k8s.io/suspend: "true"}}
spec: {suspend: true}
---
apiVersion: batch/v1
kind: Job
metadata: {name: train-a, namespace: research, uid: a}
spec: {}
---
apiVersion: scheduling.x-k8s.io/v1alpha1
kind: QueueUnit
metadata: {name: train-c-job-2e7d2c03a9, namespace: research, creationTimestamp: "2026-01-01T11:59:24Z"}
spec: {consumerRef: {apiVersion: batch/v1, kind: Job, name: train-c, uid: c}, resource: {cpu: 500m}, priority: 0, active: true}
status: {phase: Enqueued, reason: MaxJobs, queue: company-research, quota: company/research,
  message: "job limit reached in quota company/research: requested 1 job, used 2 of max 2 (kube-queue/max-jobs)"}
---
apiVersion: scheduling.x-k8s.io/v1alpha1
kind: QueueUnit
metadata: {name: train-a-job-ca978112ca, namespace: research, creationTimestamp: "2026-01-01T11:59:20Z"}
spec: {consumerRef: {apiVersion: batch/v1, kind: Job, name: train-a, uid: a}, resource: {cpu: "2"}, priority: 0, active: true}
status: {phase: Running, queue: company-research, quota: company/research, dequeueTime: "2026-01-01T11:59:25.000000Z"}
---
apiVersion: scheduling.x-k8s.io/v1alpha1
kind: QueueUnit
metadata: {name: big-tfjob-3e23e81600, namespace: other, creationTimestamp: "2026-01-01T11:59:22Z"}
spec: {consumerRef: {apiVersion: kubeflow.org/v1, kind: TFJob, name: big, uid: b}, resource: {cpu: "3"}, priority: 5}
status: {phase: Running, queue: company-research, quota: company/research, dequeueTime: "2026-01-01T11:59:23.000000Z"}
---
apiVersion: scheduling.x-k8s.io/v1alpha1
kind: QueueUnit
metadata: {name: first-tfjob-252f10c836, namespace: other, creationTimestamp: "2026-01-01T11:59:30Z"}
spec: {consumerRef: {apiVersion: kubeflow.org/v1, kind: TFJob, name: first, uid: f}, resource: {cpu: "1"}, priority: 5}
status: {phase: Enqueued, reason: MaxJobs, queue: company-research, quota: company/research}
---
apiVersion: scheduling.x-k8s.io/v1alpha1
kind: QueueUnit
metadata: {name: old, namespace: research, creationTimestamp: "2026-01-01T11:00:00Z"}
spec: {consumerRef: {apiVersion: batch/v1, kind: Job, name: old, uid: o}, resource: {cpu: "1"}}
status: {phase: Succeeded, queue: company-research, quota: company/research}
---
apiVersion: scheduling.x-k8s.io/v1alpha1
kind: Queue
metadata: {name: company-research, namespace: kube-queue}
spec: {}
status: {policy: RoundRobin, quota: company/research, pending: 2, running: 2, headReason: MaxJobs}
---
apiVersion: scheduling.sigs.k8s.io/v1beta1
kind: ElasticQuotaTree
metadata: {name: tree, namespace: kube-system}
spec: {root: {name: company, max: {cpu: 12}, children: [{name: research, namespaces: [research, other], min: {cpu: 4}, max: {cpu: 12, kube-queue/max-jobs: 2}}]}}
status:
  conditions: [{type: Valid, status: "True"}]
  nodes:
  - {path: company, used: {cpu: "5"}, request: {cpu: 6500m}, jobs: 2}
  - {path: company/research, used: {cpu: "5"}, request: {cpu: 6500m}, borrowed: {cpu: "1"}, jobs: 2}
`

const down = "reviews are off in this cluster; this is what the objects show.\n"

func expect(t *testing.T, a *api, wantCode int, wantOut, wantErr string, args ...string) {
	t.Helper()
	code, out, errs := a.run(args...)
	if code != wantCode || out != wantOut || errs != wantErr {
		t.Errorf("%v: exit status %d, want %d\nstdout:\n%s\nwant:\n%s\nstderr:\n%s\nwant:\n%s", args, code, wantCode, out, wantOut, errs, wantErr)
	}
}

// says runs a command that fails, and checks that the only line on standard error contains the words.
func says(t *testing.T, a *api, wantCode int, words []string, args ...string) {
	t.Helper()
	code, out, errs := a.run(args...)
	if code != wantCode || out != "" || strings.Count(errs, "\n") != 1 {
		t.Errorf("%v: exit status %d, want %d; stdout %q, stderr %q", args, code, wantCode, out, errs)
	}
	require.Says(t, args, errs, words...)
}

// shows runs a command, and checks that standard output contains the words.
func shows(t *testing.T, a *api, wantCode int, words []string, args ...string) {
	t.Helper()
	code, out, errs := a.run(args...)
	if code != wantCode {
		t.Errorf("%v: exit status %d, want %d\n%s%s", args, code, wantCode, out, errs)
	}
	require.Says(t, args, out, words...)
}

func TestListShowsTheUnitsThatHaveNotEnded(t *testing.T) {
	a := newAPI(t, four)
	expect(t, a, 0, ""+
		"JOB           QUEUE              PHASE      REASON    PRIORITY   REQUESTS   WAITED   AGE\n"+
		"job/train-a   company-research   Running              0          2 cpu      5s       40s\n"+
		"job/train-c   company-research   Enqueued   MaxJobs   0          500m cpu   36s      36s\n", "", "list")
	expect(t, a, 0, ""+
		"NAMESPACE   JOB           QUEUE              PHASE      REASON    PRIORITY   REQUESTS   WAITED   AGE\n"+
		"other       tfjob/first   company-research   Enqueued   MaxJobs   5          1 cpu      30s      30s\n", "", "list", "-A", "--kind", "tfjob", "--phase", "enqueued")
	expect(t, a, 0, "queueunit.scheduling.x-k8s.io/old\n", "", "list", "-o", "name", "--phase", "Succeeded")
	expect(t, a, 0, "queueunit.scheduling.x-k8s.io/big-tfjob-3e23e81600\nqueueunit.scheduling.x-k8s.io/first-tfjob-252f10c836\n", "", "list", "-n", "other", "--sort", "age", "-o", "name")
	code, out, _ := a.run("list", "-o", "json", "--reason", "MaxJobs")
	list := struct {
		Kind  string
		Items []struct{ Spec map[string]any }
	}{}
	if err := json.Unmarshal([]byte(out), &list); err != nil || code != 0 || list.Kind != "List" || len(list.Items) != 1 || list.Items[0].Spec["active"] != true {
		t.Errorf("as JSON, exit status %d: %v\n%s", code, err, out)
	}
	shows(t, a, 0, []string{"items: []"}, "list", "-o", "yaml", "--queue", "none")
}

func TestAListWithoutUnitsSaysWhy(t *testing.T) {
	a := newAPI(t, four)
	a.add(map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": "empty"}})
	expect(t, a, 0, "", "No units found in namespace empty.\n", "list", "-n", "empty")
	says(t, a, 1, []string{`namespace "reserch" does not exist`, `did you mean "research"?`}, "list", "-n", "reserch")
	says(t, a, 1, []string{"no unit has this queue", "--queue company-research"}, "list", "--queue", "company-reserch")
	says(t, a, 1, []string{"no unit has this reason", "--reason MaxJobs"}, "list", "--reason", "MaxJob")
	says(t, a, 1, []string{`unknown reason "foo"; the reasons are AdmissionCheckMissing, `}, "list", "--reason", "foo")
	says(t, a, 1, []string{`unknown reason "Preemptd"; did you mean "Preempted"?`}, "list", "-n", "empty", "--reason", "Preemptd")
	// A name that exists is not a misspelling.
	b := newAPI(t, strings.ReplaceAll(four, "reason: MaxJobs", "reason: ExceedsMinQuota"))
	b.add(map[string]any{"kind": "Queue", "metadata": map[string]any{"name": "company-researches", "namespace": "kube-queue"}})
	for _, filter := range [][]string{{"--queue", "company-researches"}, {"--reason", "ExceedsMaxQuota"}, {"--reason", "podsremain"}} {
		expect(t, b, 0, "", "No units found in namespace research.\n", append([]string{"list"}, filter...)...)
	}
	for _, namespace := range []string{"--namespace=empty", "-A"} {
		says(t, a, 1, []string{`no unit is of kind "foo"; the kinds of jobs are JAXJob, Job,`}, "list", namespace, "--kind", "foo")
		says(t, a, 1, []string{`queue "nope" does not exist in namespace kube-queue`}, "list", namespace, "--queue", "nope")
		expect(t, a, 0, "", "No units found"+map[string]string{"-A": "", "--namespace=empty": " in namespace empty"}[namespace]+".\n", "list", namespace, "--kind", "job", "--queue", "Company-Research", "--phase", "failed")
	}
	a.forbidden["list "+queuesOf+" kube-queue"] = true
	expect(t, a, 0, "", "No units found in namespace empty.\n", "list", "-n", "empty", "--queue", "nope")
	a.forbidden["get /namespaces"] = true
	expect(t, a, 0, "", "No units found in namespace reserch.\n", "list", "-n", "reserch")
}

// crowd adds units that are alike.
func crowd(a *api, n int) {
	for i := range n {
		a.add(map[string]any{"apiVersion": "scheduling.x-k8s.io/v1alpha1", "kind": "QueueUnit",
			"metadata": map[string]any{"name": fmt.Sprintf("many-%04d", i), "namespace": "research", "creationTimestamp": "2026-01-01T11:00:00Z"},
			"spec":     map[string]any{"consumerRef": map[string]any{"apiVersion": "batch/v1", "kind": "Job", "name": fmt.Sprintf("many-%04d", i)}, "resource": map[string]any{"cpu": "1"}},
			"status":   map[string]any{"phase": "Enqueued", "reason": "QuotaExceeded", "queue": "company-research"}})
	}
}

const grouped = "" +
	"JOB             UNITS   QUEUE              PHASE      REASON          PRIORITY   REQUESTS   WAITED   AGE\n" +
	"job/many-0000    2500   company-research   Enqueued   QuotaExceeded   0          1 cpu      60m      60m\n" +
	"job/train-a         1   company-research   Running                    0          2 cpu      5s       40s\n" +
	"job/train-c         1   company-research   Enqueued   MaxJobs         0          500m cpu   36s      36s\n"

func TestManyUnitsThatAreAlikeAreOneRow(t *testing.T) {
	a := newAPI(t, four)
	crowd(a, 2500)
	expect(t, a, 0, grouped, "", "list")
	if a.lists != 1+3 {
		t.Errorf("%d lists were read, want one page until there are many, and then three", a.lists)
	}
	if _, out, _ := a.run("list", "--group", "never"); strings.Count(out, "\n") != 2503 {
		t.Errorf("not grouped: %d lines", strings.Count(out, "\n"))
	}
	if _, out, _ := newAPI(t, four).run("list", "--group", "always", "--no-headers"); !strings.HasPrefix(out, "job/train-a   1 ") {
		t.Errorf("few units, grouped:\n%s", out)
	}
}

func TestManyUnitsAreCountedByWhoDecides(t *testing.T) {
	a := newAPI(t, four)
	crowd(a, 2500)
	a.answer["queuereviews"] = func(spec map[string]any) (any, *metav1.Status) {
		const total = 1003
		offset, _ := spec["offset"].(float64)
		var groups []any
		for i := int(offset); i < total && len(groups) < int(spec["limit"].(float64)); i++ {
			groups = append(groups, map[string]any{"units": 2500,
				"first": map[string]any{"namespace": "research", "name": fmt.Sprintf("many-%04d-job-2e7d2c03a9", i), "queue": "company-research", "phase": "Enqueued", "reason": "QuotaExceeded", "kind": "Job",
					"requests": map[string]any{"cpu": "1"}, "submissionTime": "2026-01-01T11:00:00Z", "position": 1}})
		}
		return map[string]any{"observedTime": "2026-01-01T12:00:00.000000Z", "total": total, "hidden": 7, "groups": groups}, nil
	}
	want := "JOB             UNITS   QUEUE              PHASE      REASON          PRIORITY   REQUESTS   WAITED   AGE\n"
	for i := range mostRows {
		want += fmt.Sprintf("job/many-%04d    2500   company-research   Enqueued   QuotaExceeded   0          1 cpu      60m      60m\n", i)
	}
	expect(t, a, 0, want,
		"3 groups more not shown; select some with --queue, --kind, --phase or --reason.\nNot shown: 7 units in namespaces that you cannot view.\n", "list")
	asked := func(more string) string {
		return `ASK queuereviews research {"limit":500,` + more + `"show":"Groups"}`
	}
	if pages := []string{asked(""), asked(`"offset":500,`)}; a.lists != 1 || !slices.Equal(a.requests, pages) {
		t.Errorf("%d lists, requests %q", a.lists, a.requests)
	}
	_, _, _ = a.run("list", "--queue", "company-research", "--phase", "enqueued")
	if last := a.requests[2]; last != `ASK queuereviews research {"limit":500,"phases":["Enqueued"],"queue":"company-research","show":"Groups"}` {
		t.Errorf("the filter is not in %s", last)
	}
	// Reviews know the exact names of queues, and only units that wait or have a reason to.
	if _, _, _ = a.run("list", "--queue", "COMPANY-research"); !strings.Contains(a.requests[3], `"queue":"company-research"`) {
		t.Errorf("asked %s", a.requests[3])
	}
	before := len(a.requests)
	for _, filter := range [][]string{{"--phase", "Failed"}, {"--reason", "podsremain"}} {
		if _, _, _ = a.run(append([]string{"list"}, filter...)...); len(a.requests) != before {
			t.Errorf("%v: asked %s", filter, a.requests[before:])
		}
	}
}

func TestListFitsTheTerminal(t *testing.T) {
	a := newAPI(t, four)
	_, out, _ := a.runIn(terminal{width: 80, colour: true}, "list")
	require.Says(t, "a terminal", out, "\x1b[32mRunning\x1b[0m", "company-res…")
	if _, out, _ := a.runIn(terminal{width: 80}, "list"); strings.Contains(out, "\x1b") {
		t.Errorf("colours that nobody wants:\n%s", out)
	}
}

func TestWatchShowsEachUnitThatChanges(t *testing.T) {
	a := newAPI(t, four)
	ctx, cancel := context.WithCancel(t.Context())
	waiting := 0
	in := terminal{wait: func(context.Context, time.Duration) bool { waiting++; cancel(); return false }}
	event := func(kind, phase string) string {
		return fmt.Sprintf(`{"type": %q, "object": {"apiVersion": "scheduling.x-k8s.io/v1alpha1", "kind": "QueueUnit", "metadata": {"name": "train-c-job-2e7d2c03a9", "namespace": "research", "uid": "c",
			"resourceVersion": "101", "creationTimestamp": "2026-01-01T11:59:24Z"}, "spec": {"consumerRef": {"apiVersion": "batch/v1", "kind": "Job", "name": "train-c"}}, "status": {"phase": %q, "queue": "company-research"}}}`, kind, phase)
	}
	a.events = []string{strings.ReplaceAll(event("MODIFIED", "Dequeued"), "\n", ""), strings.ReplaceAll(event("DELETED", "Running"), "\n", ""),
		`{"type": "ERROR", "object": {"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "InternalError", "code": 500, "message": "it broke"}}`}
	code, out, errs := execute(t, ctx, in, a.kubeconfig(), "list", "--watch")
	want := "" +
		"JOB           QUEUE              PHASE      REASON    PRIORITY   REQUESTS   WAITED   AGE\n" +
		"job/train-a   company-research   Running              0          2 cpu      5s       40s\n" +
		"job/train-c   company-research   Enqueued   MaxJobs   0          500m cpu   36s      36s\n" +
		"job/train-c   company-research   Dequeued             0                              36s\n" +
		"job/train-c   company-research   Deleted              0                              36s\n"
	if code != 1 || out != want || errs != "error: it broke\n" || waiting != 0 {
		t.Errorf("exit status %d, waited %d times\n%swant\n%s%s", code, waiting, out, want, errs)
	}
	_, out, _ = execute(t, t.Context(), in, a.kubeconfig(), "list", "--watch", "-o", "wide")
	if lines := strings.Split(strings.TrimSpace(out), "\n"); len(lines) != 5 || !strings.Contains(lines[0], "MESSAGE") || strings.Contains(lines[3], "company/research") {
		t.Errorf("wide:\n%s", out)
	}
	_, out, _ = execute(t, t.Context(), in, a.kubeconfig(), "list", "--watch", "-o", "custom-columns=JOB:.spec.consumerRef.name")
	if out != "JOB\ntrain-c\ntrain-a\ntrain-c\n" {
		t.Errorf("the titles are not once above the first unit:\n%s", out)
	}
}

func TestAWatchShowsTheLastStateOfAUnitThatIsNoLongerSelected(t *testing.T) {
	a := newAPI(t, four)
	event := func(kind, version, phase string) string {
		return fmt.Sprintf(`{"type": %q, "object": {"apiVersion": "scheduling.x-k8s.io/v1alpha1", "kind": "QueueUnit", "metadata": {"name": "train-c-job-2e7d2c03a9", "namespace": "research", "uid": "uid-train-c-job-2e7d2c03a9", "resourceVersion": %q}, "spec": {"consumerRef": {"apiVersion": "batch/v1", "kind": "Job", "name": "train-c"}}, "status": {"phase": %q}}}`, kind, version, phase)
	}
	broken := `{"type": "ERROR", "object": {"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "InternalError", "code": 500, "message": "it broke"}}`
	a.events = []string{event("MODIFIED", "101", "Succeeded"), event("MODIFIED", "102", "Succeeded"), broken}
	if _, out, _ := execute(t, t.Context(), terminal{}, a.kubeconfig(), "list", "--watch"); strings.Count(out, "Succeeded") != 1 {
		t.Errorf("the end is not shown once:\n%s", out)
	}
	// When a unit leaves the selection, the API server reports it as deleted.
	a.events = []string{event("DELETED", "101", "Enqueued"), broken}
	if _, out, _ := execute(t, t.Context(), terminal{}, a.kubeconfig(), "list", "--watch", "--field-selector", "status.phase=Enqueued"); strings.Contains(out, "Deleted") {
		t.Errorf("a unit that exists is deleted:\n%s", out)
	}
}

func TestCtrlCEndsAWatch(t *testing.T) {
	a := newAPI(t, four)
	ctx, cancel := context.WithCancel(t.Context())
	asked := 0
	in := terminal{wait: func(context.Context, time.Duration) bool {
		if asked++; asked == 2 {
			cancel()
			return false
		}
		return true
	}}
	code, out, errs := execute(t, ctx, in, a.kubeconfig(), "queue", "--watch")
	// The answer has not changed, so it is written once.
	if code != 130 || strings.Count(out, "NAME") != 1 || errs != down {
		t.Errorf("exit status %d\n%s%s", code, out, errs)
	}
}

const (
	tellBorrowed = "\nBORROWED: what the quota uses above its min\n"
	tellWaiting  = "WAITING: what waiting jobs request\n"
)

func TestTreeShowsWhatTheObjectsShow(t *testing.T) {
	a := newAPI(t, four)
	want := "" +
		"NAME         RESOURCE   MIN   USED   MAX   BORROWED   LENT   UNQUEUED   WAITING\n" +
		"company      cpu          -      5    12          -      -          -     1500m\n" +
		"  research   cpu          4      5    12          1      -          -     1500m\n" +
		"             jobs         -      2     2          -      -          -         -\n" +
		tellBorrowed + tellWaiting
	expect(t, a, 0, want, down, "tree")
	expect(t, a, 0, strings.ReplaceAll(""+
		"NAME               RESOURCE   MIN   USED   MAX   BORROWED   LENT   UNQUEUED   WAITING\n"+
		"company/research   cpu          4      5    12          1      -          -     1500m\n"+
		"                   jobs         -      2     2          -      -          -         -\n"+tellBorrowed+tellWaiting, "\t", ""), down, "tree", "company/research")
	says2(t, a, "expected the path of one quota", "tree", "company", "research")
	_, out, _ := a.runIn(terminal{width: 120}, "tree")
	require.Says(t, "a terminal", out, "███████▒▒···········")
	for _, name := range []string{"company/reserch", "research"} {
		code, _, errs := a.run("tree", name)
		if code != 1 || !strings.HasSuffix(errs, "error: quota \""+name+"\" does not exist; did you mean \"company/research\"?\n") {
			t.Errorf("exit status %d: %s", code, errs)
		}
	}
}

func TestTreeOfWhoDecidesHasMore(t *testing.T) {
	a := newAPI(t, four)
	a.answer["quotareviews"] = func(spec map[string]any) (any, *metav1.Status) {
		if spec["quota"] == "nothing" {
			return map[string]any{"observedTime": "2026-01-01T12:00:00.000000Z"}, nil
		}
		return map[string]any{"observedTime": "2026-01-01T12:00:00.000000Z", "hidden": 2, "message": "The last valid quota tree is in force.", "quotas": []any{map[string]any{"path": "company", "queue": "company", "min": map[string]any{"cpu": "4"},
			"lent": map[string]any{"cpu": "3"}, "unqueued": map[string]any{"memory": "1Gi"}, "waiting": 9, "holding": 2}}}, nil
	}
	expect(t, a, 0, ""+
		"NAME      RESOURCE   MIN   USED   MAX   BORROWED   LENT   UNQUEUED   WAITING\n"+
		"company   cpu          4      0     -          -      3          -         -\n"+
		"          memory       -      0     -          -      -        1Gi         -\n"+
		"\nLENT: the unused part of the min that other quotas use\n"+
		"UNQUEUED: what pods outside the queue use\n"+
		"2 quotas of others not shown.\nThe last valid quota tree is in force.\n", "", "tree")
	if _, out, _ := a.run("tree", "-o", "wide", "--no-headers"); !strings.Contains(out, "          jobs     -   2   -   -   -     -   9   company\n") {
		t.Errorf("the numbers of jobs, of a quota that does not limit them:\n%s", out)
	}
	says(t, a, 1, []string{`quota "nothing" does not exist, or you may not see it`}, "tree", "nothing")
	shows(t, a, 0, []string{`"kind": "QuotaReview"`, `"apiVersion": "visibility.kube-queue.dev/v1alpha1"`}, "tree", "-o", "json")
}

func TestAllPagesOfAnAnswerAreShown(t *testing.T) {
	a := newAPI(t, four)
	const total = 1200
	page := func(list string, entry func(i int) any) func(map[string]any) (any, *metav1.Status) {
		return func(spec map[string]any) (any, *metav1.Status) {
			offset, _ := spec["offset"].(float64)
			var entries []any
			for i := int(offset); i < min(total, int(offset)+500); i++ {
				entries = append(entries, entry(i))
			}
			return map[string]any{"observedTime": "2026-01-01T12:00:00.000000Z", "total": total, list: entries}, nil
		}
	}
	a.answer["quotareviews"] = page("quotas", func(i int) any { return map[string]any{"path": fmt.Sprintf("quota-%04d", i)} })
	a.answer["queuereviews"] = page("queues", func(i int) any { return map[string]any{"name": fmt.Sprintf("queue-%04d", i)} })
	for command, entry := range map[string]string{"tree": "quota", "queue": "queue"} {
		a.requests = nil
		code, out, errs := a.run(command, "--no-headers")
		if code != 0 || errs != "" || len(a.requests) != 3 {
			t.Errorf("%s: exit status %d, %q, requests %q", command, code, errs, a.requests)
		}
		for i := range total {
			if name := fmt.Sprintf("%s-%04d ", entry, i); strings.Count(out, name) != 1 {
				t.Errorf("%s shows %s %d times", command, name, strings.Count(out, name))
			}
		}
	}
}

func TestQueueShowsTheOrder(t *testing.T) {
	a := newAPI(t, four)
	queues := "" +
		"NAME               POLICY       STOP   PENDING   RESERVED   DEQUEUED   RUNNING   FRONT-REASON   QUOTA\n" +
		"company-research   RoundRobin   None         2          0          0         2   MaxJobs        company/research\n"
	expect(t, a, 0, queues, down, "queue")
	expect(t, a, 0, queues+"\n"+
		"NAMESPACE   JOB           POSITION   QUEUE              PHASE      REASON    PRIORITY   REQUESTS   WAITED   AGE\n"+
		"other       tfjob/first          1   company-research   Enqueued   MaxJobs   5          1 cpu      30s      30s\n"+
		"research    job/train-c          2   company-research   Enqueued   MaxJobs   0          500m cpu   36s      36s\n"+
		"research    job/train-a              company-research   Running              0          2 cpu      5s       40s\n"+
		"1 unit more; see --limit.\n", down, "queue", "company-research", "--limit", "3")
	says(t, a, 1, []string{`queue "company-reserch" does not exist in namespace kube-queue; did you mean "company-research"?`}, "queue", "company-reserch")
	says(t, a, 1, []string{`did you mean "company-research"?`}, "queue", "research")
	says2(t, a, `expected the name of one queue, not ""`, "queue", "")
	says2(t, a, "--limit must be from 1 to 1000", "queue", "company-research", "--limit", "0")
	// A tenant sees its own units, but not their positions.
	a.forbidden["list "+unitsOf] = true
	a.forbidden["get "+queuesOf+" kube-queue"] = true
	code, out, errs := a.run("queue", "company-research")
	if code != 0 || strings.Contains(out, "first") || strings.Contains(out, "POSITION") || !strings.Contains(out, "train-c") || !strings.Contains(errs, "only those of namespace research") {
		t.Errorf("exit status %d\n%s%s", code, out, errs)
	}
}

// says2 runs a command with a usage error. The output then refers to the help.
func says2(t *testing.T, a *api, words string, args ...string) {
	t.Helper()
	code, out, errs := a.run(args...)
	if code == 0 || out != "" || !strings.Contains(errs, words) || !strings.HasSuffix(errs, "--help' for usage.\n") {
		t.Errorf("%v: exit status %d, stdout %q, stderr %q", args, code, out, errs)
	}
}
