package audit

import (
	"errors"
	"slices"
	"testing"
	"time"

	"kube-queue.dev/kube-queue/test/audit/checks"
)

func grace(d time.Duration) time.Duration { return d }

var hourLater = time.Date(2026, 3, 1, 13, 0, 0, 0, time.UTC)

func TestGrowthShown(t *testing.T) {
	const (
		hidden = "growth-not-shown"
		grown  = "tree; a:3 admit, start 2; "
		late   = "wait 16s; a event"
		shows  = "a.unit conditions controller OverQuota=True/OverQuota; "
		two    = "tree max: {}, children: [{name: a, namespaces: [a], max: {cpu: 2}}, {name: b, namespaces: [b], max: {cpu: 9}}]; "
	)
	tellAll(t, Options{Growth: true}, []story{
		{"a node above its max shows it", grown + "wait 14s; " + shows + "wait 60s; a event", ""},
		{"or is reported", grown + late, hidden},
		{"also if it shows it too late", grown + "wait 16s; " + shows, hidden},
		{"or no longer", grown + shows + "wait 60s; a.unit conditions controller OverQuota=False/Fits; " + late, hidden},
		{"the tree can show it", grown + "tree.object conditions controller Valid=True OverQuota=True/OverQuota; " + late, ""},
		{"another unit cannot", "tree; a:3 admit; b:1 admit; a start 2; b.unit conditions controller OverQuota=True/OverQuota; " + late, hidden},
		{"a short time need not be shown", "tree; a:3 admit; wait 60s; a start 2; wait 9s; a.1 removepod training-operator; wait 9s; a start 2; wait 9s; a event", ""},
		{"nor do pods that terminate", grown + "a.1 terminate training-operator 300; " + late, ""},
		{"nor growth that fits", "tree; a:3 admit, start 1; " + late, ""},
		{"nor what was admitted before the max was lowered", "tree; a:3 admit; becomes max: {cpu: 1}, " + team + "; " + late, ""},
		{"nor that together with growth", "tree; a:3 admit, start 1; becomes max: {cpu: 1}, " + team + "; " + late, ""},
		{"but growth that no longer fits because the max was lowered", "tree; a:2 admit, start 2; wait 60s; becomes max: {cpu: 3}, " + team + "; " + late, hidden},
		{"pods that are left of a job have no unit that could show it", grown + "a orphan; " + late, ""},
		{"nor if the unit has ended", grown + "a forget, end; " + late, ""},
		{"nor if somebody deleted it", grown + "a.unit remove admin; " + late, ""},
		{"a unit of another node cannot show it", two + `x errand a root/a 1 x, admit; z errand b root/b 1 z, admit; x0 of x 3 a; z0 of z 3 b;
			z.unit conditions controller OverQuota=True/OverQuota; wait 16s; y errand a root/a 1`, hidden},
		{"without a tree there is no max", "a:3 admit, start 2; " + late, ""},
	})
	tellAll(t, Options{Growth: true, Until: hourLater}, []story{{"the end of the log counts", grown, hidden}})
}

func TestGrowthIsCheckedOnRequest(t *testing.T) {
	s := newScript(t)
	s.tell("tree; a:3 admit, start 2; wait 60s; a event, event")
	for _, c := range []struct {
		options Options
		checked bool
	}{{Options{}, false}, {Options{Growth: true}, true}, {Options{Growth: true, ResourceQuota: true}, false}} {
		report, err := s.log().Check(c.options)
		if err != nil {
			t.Fatal(err)
		}
		at := slices.IndexFunc(report.Checks, func(r checks.Result) bool { return r.Name == "growth-shown" })
		if at >= 0 != c.checked {
			t.Errorf("with %+v the growth is checked: %t, want %t", c.options, at >= 0, c.checked)
		} else if c.checked && (report.Checks[at].Found != 2 || report.Checks[at].Checked != 2) { // two nodes
			t.Errorf("%d of %d violated, want each of 2 nodes once", report.Checks[at].Found, report.Checks[at].Checked)
		}
	}
}

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
	if _, err := s.log().Accounting(Options{}); !errors.Is(err, checks.ErrNoTree) {
		t.Errorf("got %v, want %v", err, checks.ErrNoTree)
	}
}

func TestUse(t *testing.T) {
	const beat = 1000 // seconds, of which writes take only a small part
	const q = "q quota {requests.cpu: '4'}; "
	// A unit of some cores, with a priority and an hour of arrival.
	waiting := func(name, cpu, priority, hour string) string {
		return "; " + name + " make unit admin {spec: {consumerRef: {apiVersion: example.com/v1, kind: Thing, name: t}, priority: " + priority +
			", submissionTime: '2026-03-01T0" + hour + ":00:00.000001Z', resource: {cpu: " + cpu + "}}}"
	}
	const pause = "; wait 1000s; "
	for _, c := range []struct {
		name, text         string
		used, reach, beats float64 // in cores times beats
	}{
		{"nothing more would have fitted", q + "a:3 admit; b:2 enqueue" + pause + "a end; b admit" + pause, 3, 3, 1},
		{"what fitted was left waiting", q + "a:1 admit; b:2 enqueue" + pause + "b admit; a end", 1, 3, 1},
		{"the first in the queue is tried first, and the next if it does not fit", q + "a:1 admit" + waiting("x", "2", "0", "2") + waiting("y", "4", "9", "1") + waiting("z", "3", "5", "3") + pause, 1, 4, 1},
		{"among equals the earliest is first", q + "a:1 admit" + waiting("x", "1", "0", "9") + waiting("y", "3", "0", "8") + pause, 1, 4, 1},
		{"pods of others are use", q + "s stranger 2; a:1 admit" + waiting("x", "2", "0", "1") + pause, 3, 3, 1},
		{"time in which nobody waits does not count", q + "a:1 admit" + waiting("x", "1", "0", "1") + pause + "x remove admin" + pause, 1, 2, 1},
		{"what can never fit does not wait", q + "a:1 admit" + waiting("x", "5", "9", "1") + waiting("y", "4", "0", "1") + pause + "y remove admin" + pause, 1, 1, 1},
		{"while a quota has no status nothing fits", "q undecided {requests.cpu: '4'}; a:1 admit" + waiting("x", "2", "0", "1") + pause, 1, 1, 1},
		{"a stopped queue lets nobody wait", q + "a:1 admit" + waiting("x", "2", "0", "1") + "; x status controller queue=q; r make queue controller {metadata: {name: q, namespace: kube-queue}, spec: {}}" + pause + "r patch admin spec.stop=Hold" + pause, 1, 3, 1},
		{"a limit that changes counts from then", q + "a:1 admit" + waiting("x", "4", "0", "1") + pause + "q patch admin spec.hard={requests.cpu: '5'}; q decide" + pause, 2, 6, 2},
		{"a unit that lacks what the quota needs never fits", q + "a:1 admit; b:1 enqueue; b.unit patch extensions spec.podSets=[{name: w, count: 1, unset: {requests.cpu: main}}]" + waiting("x", "1", "0", "1") + pause, 1, 2, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newScript(t)
			s.group = "default"
			s.tell(c.text + "; a event")
			all, err := s.log().Use(Options{}, "default")
			if err != nil {
				t.Fatal(err)
			}
			k := all[0].Keys[0]
			for i, pair := range [][2]float64{{k.Used / beat / 1000, c.used}, {k.Reach / beat / 1000, c.reach}, {all[0].Waited.Seconds() / beat, c.beats}} {
				if d := pair[0] - pair[1]; d > 0.01 || d < -0.01 {
					t.Errorf("value %d is %f, want %f", i, pair[0], pair[1])
				}
			}
		})
	}
	s := newScript(t)
	s.group = "default"
	s.tell(q + "a:1 admit" + pause + "a event")
	if _, err := s.log().Use(Options{}, "default"); err == nil {
		t.Error("a use is reported although no unit waited")
	}
}
