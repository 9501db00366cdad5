package audit

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// unanswered patches fields as a user, without a response. The patch is stored or not.
func (th *thing) unanswered(carriedOut bool, user, subresource string, fields ...any) {
	asked := map[string]any{}
	set := func(path string, value any) {
		th.s.t.Helper()
		if n, ok := value.(int); ok {
			value = float64(n)
		}
		if err := unstructured.SetNestedField(asked, value, strings.Split(path, ".")...); err != nil {
			th.s.t.Fatal(err)
		}
	}
	set("metadata.resourceVersion", th.text("metadata.resourceVersion"))
	set("metadata.uid", th.text("metadata.uid"))
	for i := 0; i < len(fields); i += 2 {
		set(fields[i].(string), fields[i+1])
		if carriedOut {
			th.set(fields[i].(string), fields[i+1])
		}
	}
	if carriedOut {
		th.s.revision++
	}
	e := th.s.entry(user, "patch", th.resource, subresource, th.text("metadata.namespace"), th.text("metadata.name"), 504,
		map[string]any{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Timeout"})
	e["requestObject"] = asked
	th.s.wait(time.Second)
}

// asking sets the request object of the last write of the script.
func (s *script) asking(fields map[string]any) {
	s.entries[len(s.entries)-1]["requestObject"] = runtime.DeepCopyJSON(fields)
}

// waiting returns a job with this number of cores that waits for quota.
func (s *script) waiting(create func(name string, cpu int) *play, cpu int) *play {
	s.create(admin, trees, fourCPU)
	p := create("a", cpu)
	p.enqueue()
	return p
}

func (p *play) dequeueUnanswered(carriedOut bool) {
	p.unit.unanswered(carriedOut, controller, "status", "status.phase", "Dequeued", "status.reason", nil,
		"status.quota", "root/team", "status.attempts", 1)
}

func TestNextWriteShowsTheOutcomeOfAnUnansweredOne(t *testing.T) {
	running := func(p *play) {
		p.start()
		p.runs()
		p.unit.patchStatus(extensions, "status.phase", "Running")
		p.s.asking(map[string]any{"status": map[string]any{"phase": "Running"}})
		p.end()
	}
	runStories(t, []story{
		{name: "a unit is dequeued all the same", act: func(s *script) {
			p := s.waiting(s.tfjob, 4)
			p.dequeueUnanswered(true)
			p.release()
			running(p)
		}},
		{name: "a unit is not dequeued, and then it is", act: func(s *script) {
			p := s.waiting(s.tfjob, 4)
			p.dequeueUnanswered(false)
			p.dequeue()
			p.s.asking(map[string]any{"status": map[string]any{"phase": "Dequeued", "quota": "root/team", "attempts": float64(1)}})
			p.release()
			running(p)
		}},
		{name: "a unit is not dequeued, and its job is released", breaks: []string{"release-without-dequeue"}, act: func(s *script) {
			p := s.waiting(s.tfjob, 4)
			p.dequeueUnanswered(false)
			p.release()
			p.unit.patchStatus(controller, "status.message", "waits")
		}},
		{name: "a unit is dequeued all the same where there is no room", breaks: []string{"over-limit"}, act: func(s *script) {
			s.create(admin, trees, fourCPU)
			s.tfjob("a", 2).admit()
			p := s.tfjob("b", 4)
			p.enqueue()
			p.dequeueUnanswered(true)
			p.release()
			running(p)
		}},
		{name: "a unit is dequeued all the same when the one before has just ended", act: func(s *script) {
			s.create(admin, trees, fourCPU)
			a, b := s.tfjob("a", 4).admit(), s.tfjob("b", 4)
			b.enqueue()
			ended := a.finish() // its response comes after the decision on the next one
			b.dequeueUnanswered(true)
			dequeued := s.entries[len(s.entries)-1]
			dequeued["requestReceivedTimestamp"] = ended["requestReceivedTimestamp"]
			b.release()
			running(b)
			a.endUnit()
		}},
		{name: "a write that was under way at the same time shows the unit as it was", act: func(s *script) {
			p := s.waiting(s.tfjob, 4)
			p.unit.patch(admin, "metadata.labels", map[string]any{"a": "b"})
			other := s.entries[len(s.entries)-1]
			s.entries = s.entries[:len(s.entries)-1]
			p.dequeueUnanswered(true)
			s.entries = append(s.entries, other)
			p.release()
			running(p)
		}},
		{name: "two writes' lines come in the wrong order", act: func(s *script) {
			p := s.waiting(s.tfjob, 4)
			p.unit.patch(admin, "metadata.labels", map[string]any{"a": "b"})
			p.unit.patch(admin, "metadata.labels", map[string]any{"a": "c"})
			n := len(s.entries)
			s.entries[n-1], s.entries[n-2] = s.entries[n-2], s.entries[n-1]
			p.dequeueUnanswered(true)
			p.release()
			running(p)
		}},
		{name: "the unit is gone, and the next of its name is dequeued", breaks: []string{"release-without-dequeue"}, act: func(s *script) {
			p := s.waiting(s.tfjob, 4)
			p.dequeueUnanswered(false)
			p.unit.remove(admin)
			p.release()
			p.enqueue()
			p.dequeue()
		}},
		{name: "a job is released all the same", act: func(s *script) {
			p := s.waiting(s.batchJob, 1)
			p.dequeue()
			p.job.unanswered(true, extensions, "", "spec.suspend", false)
			running(p)
		}},
		{name: "a job is released all the same, twice", breaks: []string{"double-release"}, act: func(s *script) {
			p := s.waiting(s.batchJob, 1)
			p.dequeue()
			p.job.unanswered(true, extensions, "", "spec.suspend", false)
			p.runs()
			p.suspend(admin)
			p.release()
		}},
	})
}

func TestLivesIncludeUnansweredWrites(t *testing.T) {
	for _, carriedOut := range []bool{true, false} {
		s := newScript(t)
		p := s.tfjob("a", 1)
		p.enqueue()
		p.dequeueUnanswered(carriedOut)
		if !carriedOut {
			p.dequeue()
		}
		p.release()
		p.unit.patchStatus(extensions, "status.phase", "Running")
		s.asking(map[string]any{"status": map[string]any{"phase": "Running"}})
		life, err := s.log().Life(Options{}, "TFJob", "default", "a")
		if err != nil {
			t.Fatal(err)
		}
		if len(life.Dequeued) != 1 || !life.Dequeued[0].Before(life.Released[0]) {
			t.Errorf("carried out %t: dequeued at %v and released at %v, want once, and before", carriedOut, life.Dequeued, life.Released)
		}
	}
}

func TestUnitOfAnUnansweredCreate(t *testing.T) {
	for _, carriedOut := range []bool{true, false} {
		s := newScript(t)
		p := s.waiting(s.tfjob, 1)
		made := s.entries[len(s.entries)-1]
		asked := runtime.DeepCopyJSON(made["responseObject"].(map[string]any))
		for _, field := range []string{"uid", "resourceVersion", "creationTimestamp"} {
			unstructured.RemoveNestedField(asked, "metadata", field)
		}
		made["requestObject"], made["responseObject"] = asked, nil
		made["responseStatus"] = map[string]any{"code": 500}
		s.wait(time.Second)
		if !carriedOut {
			p.unit.write(extensions, "create", "", 201)
		}
		p.dequeue()
		p.release()
		log := s.log()
		if rules := rulesOf(t, log, Options{}); len(rules) > 0 {
			t.Errorf("carried out %t: the log breaks %q", carriedOut, rules)
		}
		life, err := log.Life(Options{}, "TFJob", "default", "a")
		if err != nil {
			t.Fatal(err)
		}
		line := 3
		if !carriedOut {
			line = 4
		}
		if life.Queued.Line != line {
			t.Errorf("carried out %t: queued by line %d, want %d", carriedOut, life.Queued.Line, line)
		}
	}
}

// The API server logs a write when it is answered: others may change the object before its create is logged.
func TestACreateThatIsLoggedLateShowsThatTheOneBeforeFailed(t *testing.T) {
	s := newScript(t)
	s.create(admin, trees, fourCPU)
	p := s.tfjob("a", 1)
	refused := s.entries[len(s.entries)-1]
	asked := runtime.DeepCopyJSON(refused["responseObject"].(map[string]any))
	for _, field := range []string{"uid", "resourceVersion", "creationTimestamp"} {
		unstructured.RemoveNestedField(asked, "metadata", field)
	}
	unstructured.RemoveNestedField(asked, "spec", "runPolicy", "suspend") // the webhook would have added it
	refused["requestObject"], refused["responseObject"] = asked, nil
	refused["responseStatus"] = map[string]any{"code": 500}
	s.entries = append(s.entries, refused)
	p.job.write(admin, "create", "", 201)
	p.job.patch(operator, "status.startTime", "2026-03-01T12:00:01Z")
	last := len(s.entries) - 1
	s.entries[last-1], s.entries[last] = s.entries[last], s.entries[last-1]
	p.admit()
	p.end()
	if rules := rulesOf(t, s.log(), Options{}); len(rules) > 0 {
		t.Errorf("the log breaks %q", rules)
	}
}

func TestOverwrittenUnansweredWriteIsCounted(t *testing.T) {
	for _, reported := range []bool{true, false} {
		s := newScript(t)
		p := s.waiting(s.tfjob, 1)
		p.unit.unanswered(true, controller, "status", "status.reason", "QuotaExceeded", "status.message", "waits")
		own := map[string]any{"reason": "NotAtFront", "message": "behind another"}
		if reported {
			delete(own, "message")
		}
		for field, value := range own {
			p.unit.set("status."+field, value)
		}
		p.unit.patchStatus(controller)
		s.asking(map[string]any{"status": own})
		report, err := s.log().Check(Options{})
		if err != nil {
			t.Fatal(err)
		}
		if (report.Unanswered == 0) != reported {
			t.Errorf("a field is left to compare: %t; %d writes are counted as unknown", reported, report.Unanswered)
		}
	}
}

func TestAnotherObjectWithTheNameShowsNothing(t *testing.T) {
	s := newScript(t)
	p := s.waiting(s.tfjob, 1)
	p.dequeueUnanswered(false)
	p.unit.remove(admin)
	p.enqueue()
	report, err := s.log().Check(Options{})
	if err != nil {
		t.Fatal(err)
	}
	if report.Unanswered != 1 {
		t.Errorf("%d writes are counted as unknown, want 1", report.Unanswered)
	}
}

func TestUnansweredWriteWithoutALaterOneIsCounted(t *testing.T) {
	s := newScript(t)
	p := s.waiting(s.tfjob, 1)
	p.dequeueUnanswered(true)
	report, err := s.log().Check(Options{})
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	if err := report.Print(&text); err != nil {
		t.Fatal(err)
	}
	if want := "1 writes have no response"; report.Unanswered != 1 || !strings.Contains(text.String(), want) {
		t.Errorf("%d writes without an answer, and %q not in the report, or not: %s", report.Unanswered, want, text.String())
	}
}
