package audit

import (
	"strings"
	"testing"
	"time"
)

func TestRefusedPod(t *testing.T) {
	released := func(s *script, cpu int) *play {
		p := s.tfjob("a", cpu)
		p.enqueue()
		p.dequeue()
		p.release()
		return p
	}
	for _, test := range []struct {
		name    string
		options Options
		act     func(*script)
		found   int
		note    string
	}{
		{"a pod that the job starts with", byResourceQuota, func(s *script) {
			s.quota("q", fourCores)
			released(s, 3).refused(noCPU)
		}, 1, ""},
		{"for what a container does not say", byResourceQuota, func(s *script) {
			s.quota("q", `hard: {limits.cpu: 4}`)
			released(s, 3).refused("failed quota: q: must specify limits.cpu for: main")
		}, 1, ""},
		{"for a status that is not there", byResourceQuota, func(s *script) {
			s.quota("q", fourCores)
			released(s, 3).refused("status unknown for quota: q, resources: requests.cpu")
		}, 1, ""},
		{"where quota is a tree's, nothing is checked", Options{}, func(s *script) {
			s.create(admin, trees, fourCPU)
			released(s, 3).refused(noCPU)
		}, 0, ""},
		{"for another reason", byResourceQuota, func(s *script) {
			s.quota("q", fourCores)
			released(s, 3).refused("violates PodSecurity")
		}, 0, ""},
		{"before the release", byResourceQuota, func(s *script) {
			s.quota("q", fourCores)
			p := s.tfjob("a", 3)
			p.enqueue()
			p.refused(noCPU)
		}, 0, "belong to no admitted job"},
		{"by which the job would grow", byResourceQuota, func(s *script) {
			s.quota("q", fourCores)
			p := released(s, 3)
			p.start()
			p.refused(noCPU)
		}, 0, "later growth"},
		{"in place of one that is gone", byResourceQuota, func(s *script) {
			s.quota("q", fourCores)
			p := released(s, 3)
			p.start().removePod(operator)
			p.refused(noCPU)
		}, 0, "replacements of other pods"},
		{"that is there already", byResourceQuota, func(s *script) {
			s.quota("q", fourCores)
			p := s.tfjob("a", 1)
			p.enqueue()
			p.unit.patch(extensions, "spec.podSets", []any{map[string]any{"name": "worker", "count": 2.0, "requests": map[string]any{"cpu": "1"}}})
			p.dequeue()
			p.release()
			pod := p.start()
			p.refused(noCPU)
			s.asking(map[string]any{"metadata": map[string]any{"name": pod.text("metadata.name"), "ownerReferences": []any{map[string]any{
				"kind": "TFJob", "uid": p.job.text("metadata.uid"), "controller": true}}}})
		}, 0, "already existed under the same name"},
		{"since the quota was cut after the admission", byResourceQuota, func(s *script) {
			q := s.quota("q", fourCores)
			p := released(s, 3)
			q.patch(admin, "spec.hard", map[string]any{"requests.cpu": "1"})
			p.refused("exceeded quota: q, requested: requests.cpu=3, used: requests.cpu=0, limited: requests.cpu=1")
		}, 0, "changed after the admission"},
		{"since a pod of somebody else came later and took the room", byResourceQuota, func(s *script) {
			s.quota("q", fourCores)
			p := released(s, 3)
			s.stranger(3, "")
			p.refused(noCPU)
		}, 0, "used the quota after the admission"},
		{"though what came later took not enough", byResourceQuota, func(s *script) {
			s.quota("q", fourCores)
			p := released(s, 3)
			s.stranger(1, "")
			p.refused(noCPU)
		}, 1, ""},
		{"though what took the room was there before", byResourceQuota, func(s *script) {
			s.quota("q", fourCores)
			s.stranger(3, "")
			s.wait(3 * time.Second)
			released(s, 3).refused(noCPU)
		}, 1, ""},
		{"though what came later was gone again", byResourceQuota, func(s *script) {
			s.quota("q", fourCores)
			p := released(s, 3)
			pod := s.stranger(3, "")
			pod.removePod(admin)
			s.wait(3 * time.Second)
			p.refused(noCPU)
		}, 1, ""},
		{"since another job grew and took the room", byResourceQuota, func(s *script) {
			s.quota("q", fourCores)
			other := s.tfjob("b", 1).admit()
			p := released(s, 3)
			other.start()
			p.refused("exceeded quota: q, requested: requests.cpu=3, used: requests.cpu=2, limited: requests.cpu=4")
		}, 0, "used the quota after the admission"},
		{"since the quota counts one that was created twice", byResourceQuota, func(s *script) {
			s.quota("q", fourCores)
			p := released(s, 3)
			s.twice(1)
			p.refused("exceeded quota: q, requested: requests.cpu=3, used: requests.cpu=2, limited: requests.cpu=4")
		}, 0, "created twice"},
		{"though that was not enough", byResourceQuota, func(s *script) {
			s.quota("q", fourCores)
			p := released(s, 3)
			s.twice(1)
			p.refused(noCPU)
		}, 1, ""},
		{"though the quota was counted again since", byResourceQuota, func(s *script) {
			q := s.quota("q", fourCores)
			p := released(s, 3)
			s.twice(3)
			s.wait(time.Second)
			s.decide(q)
			s.wait(3 * time.Second)
			p.refused(noCPU)
		}, 1, ""},
		{"since another twin was created since", byResourceQuota, func(s *script) {
			q := s.quota("q", fourCores)
			p := released(s, 3)
			s.decide(q)
			s.wait(3 * time.Second)
			s.twice(3)
			p.refused(noCPU)
		}, 0, "created twice"},
		{"though one was created twice before the admission", byResourceQuota, func(s *script) {
			s.quota("q", fourCores)
			s.twice(3)
			s.wait(3 * time.Second)
			released(s, 3).refused(noCPU)
		}, 1, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := newScript(t)
			test.act(s)
			report, err := s.log().Check(test.options)
			if err != nil {
				t.Fatal(err)
			}
			for _, c := range report.Checks {
				if c.Name != "refused-pod" {
					continue
				}
				if c.Found != test.found || c.Found > 0 && c.Violations[0].Rule != "refused-pod" {
					t.Errorf("found %d, want %d: %v", c.Found, test.found, c.Violations)
				}
				if notes := strings.Join(c.Notes, "\n"); !strings.Contains(notes, test.note) || (test.note == "") != (notes == "") {
					t.Errorf("notes %q, want %q", notes, test.note)
				}
			}
		})
	}
}

func TestPodsOfAdmittedJobsAreChecked(t *testing.T) {
	s := newScript(t)
	s.quota("q", fourCores)
	s.stranger(1, "")
	s.tfjob("a", 1).admit()
	s.batchJob("b", 1).admit().start()
	report, err := s.log().Check(byResourceQuota)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range report.Checks {
		if c.Name == "refused-pod" && (c.Checked != 2 || c.Found != 0) {
			t.Errorf("checked %d pods and found %d, want 2 and 0", c.Checked, c.Found)
		}
	}
}
