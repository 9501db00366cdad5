package main

import (
	"strings"
	"testing"
	"time"

	"kube-queue.dev/kube-queue/test/audit"
)

// second returns the moment at second n.
func second(n int) audit.Moment {
	return audit.Moment{Time: time.Unix(int64(n), 0), Revision: int64(n), Line: n}
}

func heldLife(kind string) audit.Life {
	return audit.Life{
		Kind: kind, Namespace: namespace, Name: "it", UID: "u",
		Created: second(1), Held: second(1), Queued: second(2), Released: []audit.Moment{second(4)}, FirstPod: second(5),
		Ended: second(9), Outcome: "Succeeded",
	}
}

func TestEachJobWasHeldFirst(t *testing.T) {
	for _, c := range []struct {
		name, kind string
		change     func(*audit.Life)
		want       string
	}{
		{"held, released and ended", "Workflow", func(*audit.Life) {}, ""},
		{"never held", "Workflow", func(l *audit.Life) { l.Held = audit.Moment{} }, "Workflow default/it was not held from its creation"},
		{"held too late", "Workflow", func(l *audit.Life) { l.Held = second(2) }, "was not held from its creation"},
		{"no unit", "Workflow", func(l *audit.Life) { l.Queued = audit.Moment{} }, "never had a QueueUnit"},
		{"never released", "Workflow", func(l *audit.Life) { l.Released = nil }, "was released 0 times"},
		{"released twice", "Workflow", func(l *audit.Life) { l.Released = append(l.Released, second(6)) }, "was released 2 times"},
		{"no pod at all", "Workflow", func(l *audit.Life) { l.FirstPod = audit.Moment{} }, "never had a pod"},
		{"a pod too early", "Workflow", func(l *audit.Life) { l.FirstPod = second(3) }, "had a pod before its release"},
		{"failed", "Workflow", func(l *audit.Life) { l.Outcome = "Failed" }, "did not succeed: Failed"},
		{"an endless job was deleted", "RayCluster", func(l *audit.Life) { l.Outcome, l.Deleted = "", second(9) }, ""},
		{"an endless job is still there", "RayCluster", func(l *audit.Life) { l.Outcome = "" }, "was not deleted"},
	} {
		t.Run(c.name, func(t *testing.T) {
			life := heldLife(c.kind)
			c.change(&life)
			expect(t, heldFirst([]audit.Life{heldLife("Job"), life}), c.want)
		})
	}
}

func TestCostsAreReportedJobByJob(t *testing.T) {
	jobs := []job{{named(t, "Workflow"), "it"}, {named(t, "RayCluster"), "it"}}
	seen := story{{rows: []row{{job: jobs[0], cpu: "2", memory: "2Gi"}, {job: jobs[1], cpu: "2500m", memory: "4Gi"}}}}
	cluster := heldLife("RayCluster")
	cluster.UID, cluster.Ended, cluster.Deleted = "v", audit.Moment{}, second(12)
	lives := []audit.Life{heldLife("Workflow"), cluster}
	writes := []audit.JobWrites{{UID: "v", OnJob: 1, OnUnit: 4, OnEvents: 2}, {UID: "u", OnJob: 1, OnUnit: 3, OnEvents: 1}}
	var out strings.Builder
	if err := printCosts(&out, jobs, seen, lives, writes); err != nil {
		t.Fatal(err)
	}
	want := `KIND        JOB  CPU    MEMORY  WAITED  RAN   WRITES
Workflow    it   2      2Gi     3.0s    5.0s  5
RayCluster  it   2500m  4Gi     3.0s    8.0s  7
`
	if out.String() != want {
		t.Errorf("printed:\n%swant:\n%s", out.String(), want)
	}
	expect(t, printCosts(&out, jobs, seen, lives, writes[:1]), "the audit log contains no write for Workflow it")
}
