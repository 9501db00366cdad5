package audit

import (
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"
)

const (
	quotas       = "/v1/resourcequotas"
	quotaSteward = "system:serviceaccount:kube-system:resourcequota-controller"
	fourCores    = `hard: {requests.cpu: "4"}`
	twoPods      = `hard: {pods: "2"}`
)

var byResourceQuota = Options{ResourceQuota: true}

// quota creates a ResourceQuota, and writes its status as the quota controller.
func (s *script) quota(name, spec string) *thing {
	s.group = "default"
	q := s.undecided(name, spec)
	s.decide(q)
	s.wait(5 * time.Second)
	return q
}

func (s *script) undecided(name, spec string) *thing {
	return s.create(admin, quotas, fmt.Sprintf(`{apiVersion: v1, kind: ResourceQuota, metadata: {name: %s}, spec: {%s}}`, name, spec))
}

// decide writes the status as the quota controller. used has alternating keys and amounts.
func (s *script) decide(q *thing, used ...string) {
	spec := q.obj["spec"].(map[string]any)
	hard := spec["hard"].(map[string]any)
	counted := map[string]any{}
	for key := range hard {
		counted[key] = "0"
	}
	for i := 0; i < len(used); i += 2 {
		counted[used[i]] = used[i+1]
	}
	q.patchStatus(quotaSteward, "status.hard", maps.Clone(hard), "status.used", counted)
}

// stranger creates a pod without an owner. more is added to its spec.
func (s *script) stranger(cpu int, more string) *thing {
	return s.create(admin, pods, fmt.Sprintf(`{apiVersion: v1, kind: Pod, metadata: {name: stranger-%d},
  spec: {containers: [{name: main, resources: {requests: {cpu: "%d"}}}]%s}, status: {phase: Pending, qosClass: Burstable}}`, s.names, cpu, more))
}

// twice creates a pod whose name exists.
func (s *script) twice(cpu int) {
	s.entry(operator, "create", pods, "", "default", "taken", 409, map[string]any{"kind": "Status", "status": "Failure", "reason": "AlreadyExists"})
	s.asking(map[string]any{"kind": "Pod", "metadata": map[string]any{"name": "taken"}, "spec": map[string]any{"containers": []any{
		map[string]any{"name": "main", "resources": map[string]any{"requests": map[string]any{"cpu": fmt.Sprint(cpu)}}}}}})
}

// refused adds the refusal of a pod of the job.
func (p *play) refused(message string) {
	s := p.s
	text := "pods \"x\" is forbidden: " + message
	e := s.entry(operator, "create", pods, "", "default", "", 403, map[string]any{"kind": "Status", "status": "Failure", "message": text})
	e["responseStatus"] = map[string]any{"code": 403, "message": text}
	s.asking(map[string]any{"kind": "Pod", "metadata": map[string]any{"generateName": "x-", "ownerReferences": []any{map[string]any{
		"kind": p.job.text("kind"), "uid": p.job.text("metadata.uid"), "controller": true}}}})
}

const noCPU = "exceeded quota: q, requested: requests.cpu=3, used: requests.cpu=3, limited: requests.cpu=4"

func TestOverLimitOfAResourceQuota(t *testing.T) {
	var stories []story
	add := func(name string, breaks string, act func(*script)) {
		stories = append(stories, story{name: name, options: byResourceQuota, act: act, breaks: strings.Fields(breaks)})
	}
	add("one after the other fits", "", func(s *script) {
		s.quota("q", fourCores)
		s.tfjob("a", 3).admit().end()
		s.tfjob("b", 3).admit().end()
	})
	add("two at once do not", "over-limit", func(s *script) {
		s.quota("q", fourCores)
		s.tfjob("a", 3).admit()
		s.tfjob("b", 3).admit()
	})
	add("the unit of a job that is gone takes nothing", "", func(s *script) {
		s.quota("q", fourCores)
		a := s.tfjob("a", 9)
		a.enqueue()
		a.job.remove(admin)
		a.dequeue()
	})
	add("cpu means requests.cpu", "over-limit", func(s *script) {
		s.quota("q", `hard: {cpu: 4}`)
		s.tfjob("a", 5).admit()
	})
	add("limits count by themselves", "over-limit", func(s *script) {
		s.quota("q", `hard: {limits.cpu: 4}`)
		a := s.tfjob("a", 1)
		a.enqueue()
		a.unit.patch(extensions, "spec.podSets", []any{map[string]any{"name": "worker", "count": 1.0,
			"requests": map[string]any{"cpu": "1"}, "limits": map[string]any{"cpu": "5"}}})
		a.dequeue()
	})
	add("pods count", "over-limit", func(s *script) {
		s.quota("q", twoPods)
		for _, name := range []string{"a", "b", "c"} {
			s.tfjob(name, 1).admit()
		}
	})
	add("every quota of the namespace counts", "over-limit", func(s *script) {
		s.quota("q", fourCores)
		s.quota("r", `hard: {requests.cpu: 2}`)
		s.tfjob("a", 3).admit()
	})
	add("what no quota names is unlimited, and so is another namespace", "", func(s *script) {
		s.quota("q", `hard: {requests.memory: 1, configmaps: 0, count/jobs.batch: 0, requests.example.com/x: 0}`)
		s.create(admin, quotas, `{apiVersion: v1, kind: ResourceQuota, metadata: {name: q, namespace: other}, spec: {hard: {cpu: 0}}}`)
		s.tfjob("a", 100).admit()
	})
	add("the lower of spec and status is the limit", "over-limit", func(s *script) {
		q := s.quota("q", fourCores)
		q.patch(admin, "spec.hard", map[string]any{"requests.cpu": "9"})
		s.wait(3 * time.Second)
		s.tfjob("a", 5).admit()
	})
	add("just after a cut the limit before justifies", "", func(s *script) {
		q := s.quota("q", fourCores)
		a := s.tfjob("a", 3)
		a.enqueue()
		q.patch(admin, "spec.hard", map[string]any{"requests.cpu": "1"})
		a.dequeue()
	})
	add("later it does not", "over-limit", func(s *script) {
		q := s.quota("q", fourCores)
		q.patch(admin, "spec.hard", map[string]any{"requests.cpu": "1"})
		s.wait(3 * time.Second)
		s.tfjob("a", 3).admit()
	})
	add("a quota that is gone limits nothing", "", func(s *script) {
		s.quota("q", fourCores).remove(admin)
		s.tfjob("a", 9).admit()
	})
	add("nor does one whose deletion returned it as it was", "", func(s *script) {
		s.quota("q", fourCores).write(admin, "delete", "", 200)
		s.wait(3 * time.Second)
		s.tfjob("a", 9).admit()
	})
	add("one that was made just now need not be known", "", func(s *script) {
		s.group = "default"
		s.undecided("q", fourCores)
		s.tfjob("a", 9).admit()
	})
	add("without a status nothing is to be released", "no-status", func(s *script) {
		s.group = "default"
		s.undecided("q", fourCores)
		s.wait(3 * time.Second)
		s.tfjob("a", 1).admit()
	})
	runStories(t, stories)
}

func TestPodsThatCountInAResourceQuota(t *testing.T) {
	var stories []story
	add := func(name string, breaks string, act func(*script)) {
		stories = append(stories, story{name: name, options: byResourceQuota, act: act, breaks: strings.Fields(breaks)})
	}
	add("pods of others count", "over-limit", func(s *script) {
		s.quota("q", fourCores)
		s.stranger(2, "")
		s.wait(3 * time.Second)
		s.tfjob("a", 3).admit()
	})
	add("but not before they can be known", "", func(s *script) {
		s.quota("q", fourCores)
		s.stranger(2, "")
		s.tfjob("a", 3).admit()
	})
	add("nor once they have ended, or are gone", "", func(s *script) {
		s.quota("q", fourCores)
		one, two := s.stranger(2, ""), s.stranger(2, "")
		s.wait(3 * time.Second)
		one.patchStatus(kwok, "status.phase", "Failed")
		two.removePod(admin)
		s.tfjob("a", 4).admit()
	})
	add("those that have ended are still there", "over-limit", func(s *script) {
		s.quota("q", `hard: {count/pods: 1}`)
		s.stranger(2, "").patchStatus(kwok, "status.phase", "Failed")
		s.wait(3 * time.Second)
		s.tfjob("a", 1).admit()
	})
	for _, c := range []struct {
		name, breaks string
		began        time.Duration // before the admission was requested
	}{{"nor what was on its way out when the unit was admitted", "", time.Millisecond}, {"but what leaves after the admission", "over-limit", -time.Millisecond}} {
		add(c.name, c.breaks, func(s *script) {
			s.quota("q", fourCores)
			pod := s.stranger(3, "")
			s.wait(3 * time.Second)
			a := s.tfjob("a", 3)
			a.enqueue()
			asked := s.now
			a.dequeue()
			pod.removePod(kwok)
			s.entries[len(s.entries)-1]["requestReceivedTimestamp"] = asked.Add(-c.began).Format("2006-01-02T15:04:05.000000Z")
		})
	}
	add("nor what is past its time to go", "", func(s *script) {
		s.quota("q", fourCores)
		pod := s.stranger(3, "")
		pod.set("metadata.finalizers", []any{"x/y"})
		pod.set("metadata.deletionTimestamp", s.now.Format(time.RFC3339))
		pod.set("metadata.deletionGracePeriodSeconds", 1)
		pod.write(admin, "delete", "", 200)
		s.wait(4 * time.Second)
		s.tfjob("a", 3).admit()
	})
	add("pods of a job that holds quota count with it", "", func(s *script) {
		s.quota("q", fourCores)
		s.tfjob("a", 2).admit()
		s.wait(3 * time.Second)
		s.tfjob("b", 2).admit()
	})
	add("but for those by which it has grown", "over-limit", func(s *script) {
		s.quota("q", fourCores)
		a := s.tfjob("a", 2).admit()
		a.start()
		s.wait(3 * time.Second)
		s.tfjob("b", 1).admit()
	})
	add("pods that outlive their job count", "over-limit", func(s *script) {
		s.quota("q", fourCores)
		a := s.tfjob("a", 3).admit()
		a.pods = nil
		a.end()
		s.wait(3 * time.Second)
		s.tfjob("b", 3).admit()
	})
	add("a resized pod is not checked by what it was", "", func(s *script) {
		s.quota("q", fourCores)
		s.stranger(3, "").change(admin, "resize", nil)
		s.wait(3 * time.Second)
		s.tfjob("a", 3).admit()
	})
	add("pods outside the scope do not count", "", func(s *script) {
		s.quota("q", twoPods+`, scopeSelector: {matchExpressions: [{scopeName: PriorityClass, operator: NotIn, values: [high]}]}`)
		s.stranger(1, ", priorityClassName: high")
		s.stranger(1, ", priorityClassName: high")
		s.wait(3 * time.Second)
		s.tfjob("a", 1).admit()
		s.tfjob("b", 1).admit()
	})
	add("those inside do", "over-limit", func(s *script) {
		s.quota("q", twoPods+`, scopes: [NotTerminating]`)
		s.stranger(1, "")
		s.stranger(1, ", activeDeadlineSeconds: 9")
		s.wait(3 * time.Second)
		s.tfjob("a", 1).admit()
		s.tfjob("b", 1).admit()
	})
	runStories(t, stories)
}

func TestWrongQuotaOfAResourceQuota(t *testing.T) {
	runStories(t, []story{
		{name: "its namespace is right", options: byResourceQuota, act: func(s *script) {
			s.quota("q", fourCores)
			s.tfjob("a", 1).admit()
		}},
		{name: "anything else is not", options: byResourceQuota, act: func(s *script) {
			s.quota("q", fourCores)
			s.group = "root/team"
			s.tfjob("a", 1).admit()
		}, breaks: []string{"wrong-quota"}},
	})
}

func TestAdmissionsWithoutAResourceQuotaAreNotChecked(t *testing.T) {
	s := newScript(t)
	s.group = "default"
	s.tfjob("a", 1).admit()
	s.quota("q", fourCores)
	s.tfjob("b", 1).admit()
	report, err := s.log().Check(byResourceQuota)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range report.Checks {
		if c.Name == "over-limit" && (c.Checked != 1 || c.NotChecked != 1 || len(c.Notes) != 1) {
			t.Errorf("checked %d, not checked %d, notes %q", c.Checked, c.NotChecked, c.Notes)
		}
	}
	if report.Quotas != 1 {
		t.Errorf("%d ResourceQuotas are reported, want 1", report.Quotas)
	}
}
