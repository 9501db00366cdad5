package command

import (
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"kube-queue.dev/kube-queue/extensions/framework/decision"
)

func unitName(job, uid string) string { return decision.UnitName("Job", job, types.UID(uid)) }

// writes returns the writes since the last call.
func (a *api) writes() []string {
	written := slices.DeleteFunc(slices.Clone(a.requests), func(r string) bool { return !strings.HasPrefix(r, "PATCH") })
	a.requests = nil
	return written
}

// changes runs a command and checks what it writes to the API server and to the user.
func changes(t *testing.T, a *api, wantOut string, wantWrites []string, args ...string) {
	t.Helper()
	code, out, errs := a.run(args...)
	if written := a.writes(); code != 0 || out != wantOut || errs != "" || !slices.Equal(written, wantWrites) {
		t.Errorf("%v: exit status %d, stdout %q, want %q, stderr %q, writes %q, want %q", args, code, out, wantOut, errs, written, wantWrites)
	}
}

const (
	// A waiting job is paused only in the version that was read, because its release creates another version.
	pausePatch   = `PATCH batch/jobs/research/train-c {"metadata":{"annotations":{"scheduling.x-k8s.io/active":"false"},"resourceVersion":"1","uid":"c"}}`
	evictPatch   = `PATCH batch/jobs/research/train-a {"metadata":{"annotations":{"scheduling.x-k8s.io/active":"false"},"uid":"a"}}`
	unpausePatch = `PATCH batch/jobs/research/train-c {"metadata":{"annotations":{"scheduling.x-k8s.io/active":"true"},"uid":"c"}}`
)

func TestAJobIsPausedAndUnpausedOnce(t *testing.T) {
	a := newAPI(t, four)
	changes(t, a, "job.batch/train-c paused (dry run)\n", []string{pausePatch + " All"}, "pause", "train-c", "--dry-run")
	changes(t, a, "job.batch/train-c paused (dry run)\n", nil, "pause", "train-c", "--dry-run=client")
	changes(t, a, "job.batch/train-c paused\n", []string{pausePatch}, "pause", "train-c")
	// As job-extensions does.
	a.objects[unitsOf][0]["spec"].(map[string]any)["active"] = false
	changes(t, a, "job.batch/train-c is already paused\n", nil, "pause", "job/train-c")
	changes(t, a, "job.batch/train-c unpaused: it is queued again\n", []string{unpausePatch}, "unpause", "train-c")
	a.objects[unitsOf][0]["spec"].(map[string]any)["active"] = true
	changes(t, a, "job.batch/train-c is not paused\n", nil, "unpause", "train-c")
	// Their former names.
	changes(t, a, "job.batch/train-c paused (dry run)\n", nil, "hold", "train-c", "--dry-run=client")
	changes(t, a, "job.batch/train-c is not paused\n", nil, "release", "train-c")
	if _, help, _ := a.run("--help"); strings.Contains(help, "  hold ") || strings.Contains(help, "  release ") || !strings.Contains(help, "  unpause ") {
		t.Errorf("the help shows former names:\n%s", help)
	}
	says2(t, a, "--dry-run: unknown value", "pause", "train-c", "--dry-run=maybe")
	says(t, a, 1, []string{"job.batch/old has ended"}, "pause", "old")
}

func TestAJobThatRunsIsPausedOnlyWithEvict(t *testing.T) {
	a := newAPI(t, four)
	says(t, a, 1, []string{"job.batch/train-a holds quota", "--evict"}, "pause", "train-a")
	if written := a.writes(); written != nil {
		t.Errorf("writes %q", written)
	}
	changes(t, a, "job.batch/train-a paused; it is being stopped\n", []string{evictPatch}, "pause", "train-a", "--evict")
}

func TestAJobThatWasSuspendedByHandIsNotUnpaused(t *testing.T) {
	a := newAPI(t, four)
	a.objects[unitsOf][0]["status"].(map[string]any)["reason"] = "SuspendedByUser"
	says(t, a, 1, []string{"suspended by hand", "unsuspend it"}, "unpause", "train-c")
}

func TestAUnitThatSomebodyCreatedIsPausedItself(t *testing.T) {
	a := newAPI(t, four)
	a.add(map[string]any{"apiVersion": "scheduling.x-k8s.io/v1alpha1", "kind": "QueueUnit", "metadata": map[string]any{"name": "mine", "namespace": "research"},
		"spec": map[string]any{"consumerRef": map[string]any{"apiVersion": "example.com/v1", "kind": "Experiment", "name": "mine"}}})
	changes(t, a, "unit mine paused\n", []string{`PATCH scheduling.x-k8s.io/queueunits/research/mine {"metadata":{"resourceVersion":"6","uid":"uid-mine"},"spec":{"active":false}}`}, "pause", "mine")
	changes(t, a, "unit mine is already paused\n", nil, "pause", "qu/mine")
	changes(t, a, "unit mine unpaused: it is queued again\n", []string{`PATCH scheduling.x-k8s.io/queueunits/research/mine {"metadata":{"uid":"uid-mine"},"spec":{"active":true}}`}, "unpause", "mine")
	says(t, a, 1, []string{"its priority cannot be changed"}, "priority", "mine", "3")
}

func TestThePriorityOfAJobIsSet(t *testing.T) {
	a := newAPI(t, four)
	patch := `PATCH batch/jobs/research/train-c {"metadata":{"annotations":{"scheduling.x-k8s.io/priority":"-5"},"uid":"c"}}`
	changes(t, a, "job.batch/train-c has priority -5 (was 0)\n", []string{patch}, "priority", "train-c", "--", "-5")
	changes(t, a, "job.batch/train-c already has priority -5\n", nil, "priority", "job", "train-c", "--", "-5")
	a.objects[queuesOf][0]["spec"] = map[string]any{"maxPriority": 10}
	code, out, errs := a.run("priority", "train-c", "11")
	if code != 0 || out != "job.batch/train-c has priority 11 (was 0)\n" || errs != "The maxPriority of queue company-research is 10: the job is ordered as if it had this priority.\n" {
		t.Errorf("exit status %d, stdout %q, stderr %q", code, out, errs)
	}
	a.objects[jobsOf][0]["metadata"].(map[string]any)["annotations"].(map[string]any)["scheduling.x-k8s.io/priority"] = "high"
	if _, out, _ := a.run("priority", "train-c", "3"); out != "job.batch/train-c has priority 3 (was \"high\")\n" {
		t.Errorf("after an invalid one, stdout %q", out)
	}
	for _, wrong := range [][]string{{"train-c"}, {"train-c", "high"}, {"train-c", "2147483648"}, {}} {
		says2(t, a, "priority", append([]string{"priority"}, wrong...)...)
	}
	says2(t, a, "write a negative priority after --: -- -5\n", "priority", "train-c", "-5")
	says2(t, a, "unknown shorthand flag: 'x'", "priority", "train-c", "-x")
}

func TestAQueueIsStoppedAndResumedOnce(t *testing.T) {
	a := newAPI(t, four)
	patch := func(stop string) []string {
		return []string{`PATCH scheduling.x-k8s.io/queues/kube-queue/company-research {"spec":{"stop":"` + stop + `"}}`}
	}
	changes(t, a, "queue company-research already has spec.stop None\n", nil, "resume", "company-research")
	changes(t, a, "queue company-research stopped; running jobs continue (dry run)\n", []string{patch("Hold")[0] + " All"}, "stop", "company-research", "--dry-run=server")
	changes(t, a, "queue company-research stopped; running jobs continue\n", patch("Hold"), "stop", "company-research")
	changes(t, a, "queue company-research already has spec.stop Hold\n", nil, "stop", "company-research")
	changes(t, a, "queue company-research stopped; jobs that hold quota are being stopped\n", patch("Drain"), "stop", "company-research", "--drain")
	changes(t, a, "queue company-research resumed\n", patch("None"), "resume", "company-research")
	says(t, a, 1, []string{`queue "company-reserch" does not exist`, `did you mean "company-research"?`}, "stop", "company-reserch")
	says2(t, a, "expected the name of one queue\n", "stop")
	says2(t, a, `expected the name of one queue, not ""`, "resume", "")
}

func TestAMissingRightIsNamed(t *testing.T) {
	a := newAPI(t, four)
	a.forbidden["patch "+jobsOf+" research"] = true
	a.forbidden["patch "+queuesOf+" kube-queue"] = true
	a.forbidden["get "+queuesOf+" kube-queue"] = true
	says(t, a, 1, []string{"job.batch/train-c", `cannot patch resource "jobs"`, "ask an administrator"}, "pause", "train-c")
	says(t, a, 1, []string{"queue company-research", `cannot patch resource "queues"`, "ask an administrator"}, "stop", "company-research")
	a.forbidden["list "+unitsOf+" research"] = true
	says(t, a, 1, []string{`cannot list resource "queueunits"`, "ask an administrator"}, "list")
}

func TestAnotherJobOfTheNameIsNotPaused(t *testing.T) {
	a := newAPI(t, four)
	const former = "train-c-job-0000000000"
	a.add(map[string]any{"apiVersion": "scheduling.x-k8s.io/v1alpha1", "kind": "QueueUnit", "metadata": map[string]any{"name": former, "namespace": "research"},
		"spec":   map[string]any{"consumerRef": map[string]any{"apiVersion": "batch/v1", "kind": "Job", "name": "train-c", "uid": "former"}},
		"status": map[string]any{"phase": "Running", "reason": "PodsRemain"}})
	says(t, a, 1, []string{former, "is gone"}, "pause", "qu/"+former, "--evict")
	says(t, a, 1, []string{former, "is gone"}, "priority", "qu/"+former, "7")
	if written := a.writes(); written != nil {
		t.Errorf("writes %q", written)
	}
	// Where no policy protects units, users can create units that name a job without its UID.
	a.add(map[string]any{"apiVersion": "scheduling.x-k8s.io/v1alpha1", "kind": "QueueUnit", "metadata": map[string]any{"name": "by-hand", "namespace": "research"},
		"spec": map[string]any{"consumerRef": map[string]any{"apiVersion": "batch/v1", "kind": "Job", "name": "train-c"}}})
	changes(t, a, "job.batch/train-c paused\n", []string{pausePatch}, "pause", "qu/by-hand")
}

func TestAJobThatStartsMeanwhileIsNotPaused(t *testing.T) {
	a := newAPI(t, four)
	a.conflict = true
	says(t, a, 1, []string{"job.batch/train-c", "repeat the command"}, "pause", "train-c")
}

func TestWhatKubeQueueDoesNotQueueIsNotPaused(t *testing.T) {
	a := newAPI(t, four)
	a.add(map[string]any{"apiVersion": "batch/v1", "kind": "Job", "metadata": map[string]any{"name": "runs", "namespace": "research", "uid": "r"}, "spec": map[string]any{}})
	a.add(map[string]any{"apiVersion": "scheduling.x-k8s.io/v1alpha1", "kind": "QueueUnit", "metadata": map[string]any{"name": "grows", "namespace": "research"},
		"spec": map[string]any{"growth": true, "consumerRef": map[string]any{"apiVersion": "batch/v1", "kind": "Job", "name": "train-a", "uid": "a"}}})
	for _, change := range [][]string{{"pause"}, {"unpause"}, {"priority", "7"}} {
		args := func(job string) []string { return append([]string{change[0], job}, change[1:]...) }
		says(t, a, 1, []string{"job.batch/runs has no QueueUnit", "it has no mark"}, args("job/runs")...)
		says(t, a, 1, []string{"pods that Job train-a has added", "name job/train-a"}, args("job/train-a-growth")...)
	}
	if written := a.writes(); written != nil {
		t.Errorf("writes %q", written)
	}
}

func TestAGroupOfPodsIsChangedThroughItsPods(t *testing.T) {
	a := newAPI(t, four)
	const unit = "workers-podgroup-0123456789"
	a.add(map[string]any{"apiVersion": "scheduling.x-k8s.io/v1alpha1", "kind": "QueueUnit", "metadata": map[string]any{"name": unit, "namespace": "research"},
		"spec": map[string]any{"consumerRef": map[string]any{"apiVersion": "kube-queue.dev/v1", "kind": "PodGroup", "name": "workers", "uid": "p"}}})
	for _, args := range [][]string{{"pause", unit}, {"pause", "podgroup/workers"}, {"priority", unit, "3"}} {
		says(t, a, 1, []string{"kubectl annotate pods", "kube-queue/pod-group=workers"}, args...)
	}
	if written := a.writes(); written != nil {
		t.Errorf("writes %q", written)
	}
}
