package audit

import (
	"errors"
	"slices"
	"testing"
)

func TestAccountingIsTheSumOverUnitsAndPods(t *testing.T) {
	const start = "tree max: {cpu: 8}, children: [{name: a, namespaces: [a], max: {cpu: 4}}, {name: b, namespaces: [b]}]; tree.object patch admin metadata.generation=1; x errand a root/a 3, admit; y errand a root/a 2; z errand b root/b 1, admit, end; "
	const show = "tree.object status controller observedGeneration=1 nodes="
	const root, a, b = "{path: root, jobs: 1, used: {cpu: 3}, request: {cpu: 5}}", "{path: root/a, jobs: 1, used: {cpu: 3}, request: {cpu: 5}}", "{path: root/b, jobs: 0}"
	const grown = "tree; tree.object patch admin metadata.generation=1; a:2 admit, start 1; "
	const left = show + "[{path: root, jobs: 0, used: {cpu: 3}, request: {cpu: 3}}, {path: root/team, jobs: 0, used: {cpu: 3}, request: {cpu: 3}}]"
	for _, c := range []struct {
		name, text string
		want       []string
	}{
		{"right", start + show + "[" + root + "," + a + "," + b + "]", nil},
		{"a status of before", start + show + "[]; tree.object patch admin metadata.generation=2", []string{"the status has observedGeneration 1, but the tree has generation 2"}},
		{"too little used", start + show + "[{path: root, jobs: 1, used: {cpu: 2500m}, request: {cpu: 5}}," + a + "," + b + "]", []string{"node root: used: cpu: status 2500m, counted 3"}},
		{"a job too many", start + show + "[" + root + "," + a + ",{path: root/b, jobs: 1}]", []string{"node root/b: jobs: 1 in the status, 0 counted"}},
		{"one in the queue forgotten", start + show + "[{path: root, jobs: 1, used: {cpu: 3}, request: {cpu: 3}}," + a + "," + b + "]", []string{"node root: request: cpu: status 3, counted 5"}},
		{"those that do not ask do not count", start + "v errand a root/a 1; v.unit patch admin spec.active=false; w errand nowhere root 1; " + show + "[" + root + "," + a + "," + b + "]", nil},
		{"a node left out and one too many", start + show + "[" + root + "," + a + "," + a + ",{path: root/c}]",
			[]string{"node root/a: listed twice in the status", "node root/b: missing in the status", "node root/c: listed in the status, but not in the tree"}},
		{"what belongs to no group any more is still used", start + "later max: {cpu: 8}, children: [{name: b, namespaces: [b]}]; " + show + "[{path: root, jobs: 1, used: {cpu: 3}, request: {cpu: 3}}," + b + "]", nil},
		{"one that waits for its time again asks when that has come", start + "u errand b root/b 2; u.unit status controller phase=Backoff requeueState.requeueAt=now+1s; wait 2s; " + show + "[" + root + "," + a + "," + b + "]",
			[]string{"node root: request: cpu: status 5, counted 7", "node root/b: request: cpu: status 0, counted 2"}},
		{"a pod that was not admitted", grown + show + "[{path: root, jobs: 1, used: {cpu: 3}, request: {cpu: 3}}, {path: root/team, jobs: 1, used: {cpu: 3}, request: {cpu: 3}}]", nil},
		{"pods that are left", grown + "a.0 terminate training-operator 30; a orphan; " + left, nil},
		{"and no longer after the grace period of one", grown + "a.0 terminate training-operator 30; a orphan; wait 60s; " + left, []string{
			"node root/team: request: cpu: status 3, counted 1", "node root/team: used: cpu: status 3, counted 1", "node root: request: cpu: status 3, counted 1", "node root: used: cpu: status 3, counted 1"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newScript(t)
			s.tell(c.text)
			got, err := s.log().Accounting(Options{})
			if err != nil {
				t.Fatal(err)
			}
			slices.Sort(got)
			slices.Sort(c.want)
			if !slices.Equal(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
	s := newScript(t)
	s.tell("x errand a root 1")
	if _, err := s.log().Accounting(Options{}); !errors.Is(err, ErrNoTree) {
		t.Errorf("got %v, want %v", err, ErrNoTree)
	}
}
