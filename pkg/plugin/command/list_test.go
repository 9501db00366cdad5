package command

import (
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestListShowsWhatIsSelected(t *testing.T) {
	a := newAPI(t, four)
	const header = "JOB           QUEUE              PHASE      REASON    PRIORITY   REQUESTS   WAITED   AGE\n"
	const waiting = "job/train-c   company-research   Enqueued   MaxJobs   0          500m cpu   36s      36s\n"
	for _, job := range [][]string{{"train-c"}, {"job/train-c"}, {"jobs", "train-c"}, {"train-c-job-2e7d2c03a9"}, {"qu/train-c-job-2e7d2c03a9"}} {
		expect(t, a, 0, header+waiting, "", append([]string{"list"}, job...)...)
	}
	expect(t, a, 0, "queueunit.scheduling.x-k8s.io/old\n", "", "list", "old", "-o", "name") // it has ended
	expect(t, a, 0, "job/train-c   company-research   Enqueued   MaxJobs   0   500m cpu   36s   36s   train-c-job-2e7d2c03a9   company/research   "+
		"job limit reached in quota company/research: requested 1 job, used 2 of max 2 (kube-queue/max-jobs)\n", "", "list", "train-c", "-o", "wide", "--no-headers")
	says(t, a, 1, []string{`no unit of a job "tfjob/train-c"`}, "list", "tfjob/train-c")
	says(t, a, 1, []string{`no unit of a job "none"`}, "list", "none", "-A", "-o", "json")
	for _, format := range []string{"table", "name"} {
		if _, _, _ = a.run("list", "-l", "a=b", "--field-selector", "status.queue=q", "-o", format); a.selectors != "a=b status.queue=q" {
			t.Errorf("-o %s: the selectors are %q", format, a.selectors)
		}
	}
	// A review has no selectors.
	a.requests = nil
	crowd(a, 2500)
	if _, _, errs := a.run("list", "--selector", "a=b"); len(a.requests) > 0 || errs != "" {
		t.Errorf("asked %q: %s", a.requests, errs)
	}
}

func TestListShowsWhenAFewUnitsStart(t *testing.T) {
	a := newAPI(t, four)
	a.answer["queuereviews"] = func(map[string]any) (any, *metav1.Status) {
		const at = "2026-01-01T14:00:00Z"
		return map[string]any{"observedTime": "2026-01-01T12:00:00.000000Z", "units": []any{map[string]any{"namespace": "research", "name": "train-c-job-2e7d2c03a9",
			"start": map[string]any{"time": at, "earliest": at, "latest": at}}}}, nil
	}
	expect(t, a, 0, ""+
		"JOB           QUEUE              PHASE      REASON    PRIORITY   REQUESTS   WAITED   AGE   STARTS-IN\n"+
		"job/train-a   company-research   Running              0          2 cpu      5s       40s\n"+
		"job/train-c   company-research   Enqueued   MaxJobs   0          500m cpu   36s      36s   2 h\n\n"+
		"STARTS-IN: about how much longer the job waits, if jobs run as long as earlier ones\n", "", "list")
	if want := []string{`ASK queuereviews research {"limit":200,"phases":["Enqueued","Backoff"],"show":"Units"}`}; !slices.Equal(a.requests, want) {
		t.Errorf("asked %q", a.requests)
	}
	if _, out, _ := a.run("list", "--queue", "Company-Research"); len(a.requests) != 2 || !strings.Contains(a.requests[1], `"queue":"company-research"`) || !strings.Contains(out, "STARTS-IN") {
		t.Errorf("asked %q with the queue in other letters:\n%s", a.requests, out)
	}
	if _, out, _ := a.run("list", "--phase", "Running"); len(a.requests) > 2 || strings.Contains(out, "STARTS") {
		t.Errorf("asked %q about units that run:\n%s", a.requests, out)
	}
}

func TestListPrintsFieldsLikeKubectl(t *testing.T) {
	a := newAPI(t, four)
	names := func(of ...string) (lines string) {
		for _, name := range of {
			lines += "queueunit.scheduling.x-k8s.io/" + name + "\n"
		}
		return lines
	}
	const first, big, trainA, trainC = "first-tfjob-252f10c836", "big-tfjob-3e23e81600", "train-a-job-ca978112ca", "train-c-job-2e7d2c03a9"
	for by, want := range map[string]string{
		".spec.resource.cpu":          names(trainC, first, trainA, big), // 500m, 1, 2 and 3
		"{.spec.consumerRef.name}":    names(big, first, trainA, trainC),
		"status.dequeueTime":          names(first, trainC, big, trainA), // two have none
		"priority":                    names(big, first, trainA, trainC),
		".spec.consumerRef.name.none": names(big, first, trainA, trainC),
	} {
		expect(t, a, 0, want, "", "list", "-A", "--sort-by", by, "-o", "name")
	}
	if compareValues("1e1000000000", "2") >= 0 { // comparing them as numbers would take hours
		t.Error("a monstrous exponent is not compared as text")
	}
	expect(t, a, 0, "job/train-c   company-research   Enqueued   MaxJobs   0   500m cpu   36s   36s\njob/train-a   company-research   Running              0   2 cpu      5s    40s\n", "",
		"list", "--sort-by", ".spec.resource.cpu", "--no-headers")
	expect(t, a, 0, "JOB       CPU    ADMITTED\ntrain-a   2      2026-01-01T11:59:25.000000Z\ntrain-c   500m   <none>\n", "",
		"list", "-o", "custom-columns=JOB:.spec.consumerRef.name,CPU:{.spec.resource.cpu},ADMITTED:status.dequeueTime")
	expect(t, a, 0, "train-a train-c", "", "list", "-o", "jsonpath={.items[*].spec.consumerRef.name}")
	expect(t, a, 0, "2 500m ", "", "list", "-o", "go-template={{range .items}}{{.spec.resource.cpu}} {{end}}")
	expect(t, a, 0, "company-research", down, "queue", "-o", "jsonpath={.status.queues[0].name}")
}
