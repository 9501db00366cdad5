package e2e

import (
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"kube-queue.dev/kube-queue/test/audit"
	"kube-queue.dev/kube-queue/test/harness"
	"kube-queue.dev/kube-queue/test/testmode"
)

// change is a change of a quota tree while jobs run and wait, with its result. The changes of a round share a tree,
// in which each has its own branches and namespaces.
type change struct {
	name string
	// before and after are its branches under the root.
	before, after string
	// running and waiting jobs at the time of the change.
	running, waiting []queued
	// atOnce lists the jobs that the change releases, and stranded the jobs that it leaves without quota. late is
	// submitted after the change and has no quota either.
	atOnce, stranded []string
	late             []queued
	// ends lists the jobs that the test then ends. next is released only after all of them have ended.
	ends        []string
	next, quota string
}

// queued is a job that runs until the test ends it.
type queued struct{ namespace, kind, name, manifest string }

func batchJob(namespace, name, cpu string) queued {
	return queued{namespace, "Job", name, harness.Job{Name: name, CPU: cpu, Runs: harness.UntilFinished}.String()}
}

// rounds are the changes that are made one after another, because "*" in a tree gives each namespace a group.
var rounds = [][]change{{
	{
		name:    "a quota is lowered under its use",
		before:  `{name: lowered, namespaces: [lowered], min: {cpu: 1}, max: {cpu: 4}}`,
		after:   `{name: lowered, namespaces: [lowered], min: {cpu: 1}, max: {cpu: 2}}`,
		running: []queued{batchJob("lowered", "lowered-1", "2"), batchJob("lowered", "lowered-2", "2")},
		waiting: []queued{batchJob("lowered", "lowered-3", "1")},
		ends:    []string{"lowered-1", "lowered-2"}, next: "lowered-3", quota: "root/lowered",
	},
	{
		name:    "a quota is raised",
		before:  `{name: raised, namespaces: [raised], max: {cpu: 2}}`,
		after:   `{name: raised, namespaces: [raised], max: {cpu: 5}}`,
		running: []queued{batchJob("raised", "raised-1", "2")},
		waiting: []queued{batchJob("raised", "raised-2", "2"), batchJob("raised", "raised-3", "2")},
		atOnce:  []string{"raised-2"},
		ends:    []string{"raised-1"}, next: "raised-3", quota: "root/raised",
	},
	{
		name: "a node is moved under another parent",
		before: `{name: here, max: {cpu: 4}, children: [{name: mover, namespaces: [mover], min: {cpu: 1}}, {name: stayer, namespaces: [stayer]}]},
			{name: there, max: {cpu: 3}}`,
		after: `{name: here, max: {cpu: 4}, children: [{name: stayer, namespaces: [stayer]}]},
			{name: there, max: {cpu: 3}, children: [{name: mover, namespaces: [mover], min: {cpu: 1}}]}`,
		running: []queued{batchJob("mover", "mover-1", "3")},
		waiting: []queued{batchJob("mover", "mover-2", "2"), batchJob("stayer", "stayer-1", "2")},
		atOnce:  []string{"stayer-1"},
		ends:    []string{"mover-1"}, next: "mover-2", quota: "root/there/mover",
	},
	{
		name:    "a node is renamed",
		before:  `{name: old-name, namespaces: [renamed], max: {cpu: 2}}`,
		after:   `{name: new-name, namespaces: [renamed], max: {cpu: 2}}`,
		running: []queued{batchJob("renamed", "renamed-1", "2")},
		waiting: []queued{batchJob("renamed", "renamed-2", "1")},
		ends:    []string{"renamed-1"}, next: "renamed-2", quota: "root/new-name",
	},
	{
		name:   "a node is removed with jobs running",
		before: `{name: org, max: {cpu: 4}, children: [{name: doomed, namespaces: [doomed]}, {name: heir, namespaces: [heir]}]}`,
		after:  `{name: org, max: {cpu: 4}, children: [{name: heir, namespaces: [heir]}]}`,
		running: []queued{{"doomed", "TFJob", "doomed-1",
			harness.TFJob{Name: "doomed-1", Servers: 1, Workers: 2, CPU: "1", Runs: harness.UntilFinished}.String()}},
		waiting:  []queued{batchJob("doomed", "doomed-2", "2"), batchJob("heir", "heir-1", "2")},
		stranded: []string{"doomed-2"},
		late:     []queued{batchJob("doomed", "doomed-3", "1")},
		ends:     []string{"doomed-1"}, next: "heir-1", quota: "root/org/heir",
	},
	{
		name:    "a namespace is moved from one group to another",
		before:  `{name: from, namespaces: [walker], max: {cpu: 3}}, {name: to, namespaces: [settled], max: {cpu: 4}}`,
		after:   `{name: from, max: {cpu: 3}}, {name: to, namespaces: [settled, walker], max: {cpu: 4}}`,
		running: []queued{batchJob("walker", "walker-1", "2"), batchJob("settled", "settled-1", "2")},
		waiting: []queued{batchJob("walker", "walker-2", "2")},
		ends:    []string{"settled-1"}, next: "walker-2", quota: "root/to",
	},
}, {
	{
		name:    "a namespace falls to the star",
		before:  `{name: own, namespaces: [strayed], max: {cpu: 2}}, {name: everyone, max: {cpu: 5}}`,
		after:   `{name: own, namespaces: [elsewhere], max: {cpu: 2}}, {name: everyone, namespaces: ["*"], max: {cpu: 5}}`,
		running: []queued{batchJob("strayed", "strayed-1", "2")},
		waiting: []queued{batchJob("strayed", "strayed-2", "2")},
		atOnce:  []string{"doomed-2", "doomed-3"}, // without quota because their node was removed
		ends:    []string{"strayed-1"}, next: "strayed-2", quota: "root/everyone",
	},
}}

const killsBoth = "both programs are killed as it is made"

// Jobs follow each change of the tree while programs are killed: no running job is stopped, no job is released twice
// or too early, and after each change the status of each node equals the checker's sum.
func TestRunningAndWaitingJobsFollowEveryChangeOfTheTree(t *testing.T) {
	for _, form := range []struct {
		name string
		kill func(c, x *harness.Program, change func())
	}{
		{"the controller runs throughout", func(_, _ *harness.Program, change func()) { change() }},
		{"the controller is killed before it hears of it", func(c, _ *harness.Program, change func()) {
			c.Kill()
			change()
			c.Start()
		}},
		{killsBoth, func(c, x *harness.Program, change func()) {
			change()
			c.Kill()
			x.Kill()
			x.Start()
			c.Start()
		}},
	} {
		t.Run(form.name, func(t *testing.T) {
			if form.name != killsBoth {
				testmode.OnlyInTestAll(t, "both programs are killed as the tree changes in make test")
			}
			l := suite.Env(t, "trees")
			c, x := suite.Both(t, enabled)
			s := newStory(t, l)
			s.begin()
			for i := range rounds {
				form.kill(c, x, func() { s.plant(i + 1) })
				s.afterChange(rounds[i])
				l.WaitForTree()
				s.afterEnds(rounds[i])
			}
			s.end()
			l.ExpectFree()
			s.judge()
			l.Allowed = []string{"write-budget"} // a restarted program may repeat writes
		})
	}
}

// story runs the changes of all rounds.
type story struct {
	t    *testing.T
	env  *harness.Env
	envs map[string]*harness.Env // by namespace
	jobs map[string]queued       // by name
}

func newStory(t *testing.T, l *harness.Env) *story {
	s := &story{t: t, env: l, envs: map[string]*harness.Env{}, jobs: map[string]queued{}}
	for _, c := range slices.Concat(rounds...) {
		for _, j := range slices.Concat(c.running, c.waiting, c.late) {
			s.jobs[j.name] = j
			if s.envs[j.namespace] == nil {
				s.envs[j.namespace] = suite.Part(t, j.namespace)
			}
		}
	}
	return s
}

func (s *story) in(name string) *harness.Env { return s.envs[s.jobs[name].namespace] }

// plant applies the tree after this many rounds.
func (s *story) plant(done int) {
	var branches []string
	for i, round := range rounds {
		for _, c := range round {
			if i < done {
				branches = append(branches, c.after)
			} else {
				branches = append(branches, c.before)
			}
		}
	}
	s.env.TreeOf(branches...)
}

// begin submits all jobs and waits until they run or wait.
func (s *story) begin() {
	s.t.Helper()
	s.plant(0)
	for _, c := range slices.Concat(rounds...) {
		for _, j := range c.running {
			s.in(j.name).Apply(j.manifest)
		}
	}
	for _, c := range slices.Concat(rounds...) {
		for _, j := range c.running {
			s.in(j.name).WaitForPhase(j.kind, j.name, "Running")
		}
		for _, j := range c.waiting {
			s.in(j.name).Apply(j.manifest)
		}
	}
	for _, c := range slices.Concat(rounds...) {
		for _, j := range c.waiting {
			s.in(j.name).WaitForReason(j.kind, j.name, "QuotaExceeded")
		}
	}
}

// afterChange waits for the jobs released by the change, and submits the late ones.
func (s *story) afterChange(round []change) {
	s.t.Helper()
	for _, c := range round {
		for _, name := range c.atOnce {
			s.in(name).WaitForPhase(s.jobs[name].kind, name, "Dequeued", "Running")
		}
		for _, j := range c.late {
			s.in(j.name).Apply(j.manifest)
			s.in(j.name).WaitForReason(j.kind, j.name, "NoQuota")
		}
	}
}

// afterEnds ends the jobs that others wait for, and waits for the others.
func (s *story) afterEnds(round []change) {
	s.t.Helper()
	for _, c := range round {
		for _, name := range slices.Concat(c.stranded, []string{c.next}) {
			if unit := s.in(name).Unit(s.jobs[name].kind, name); unit == nil || unit.Status.Attempts != 0 {
				s.t.Errorf("%s: %s went too early: %v", c.name, name, unit)
			}
		}
		for _, name := range c.ends {
			s.finish(name)
		}
	}
	for _, c := range round {
		for _, name := range c.ends {
			s.in(name).WaitForPhase(s.jobs[name].kind, name, "Succeeded")
		}
		unit := s.in(c.next).WaitForPhase(s.jobs[c.next].kind, c.next, "Dequeued", "Running")
		if unit.Status.Quota != c.quota {
			s.t.Errorf("%s: %s went by quota %q, want %q", c.name, c.next, unit.Status.Quota, c.quota)
		}
	}
}

func (s *story) finish(name string) {
	s.t.Helper()
	resource := map[string]schema.GroupVersionResource{"Job": harness.Jobs, "TFJob": harness.TFJobs}[s.jobs[name].kind]
	s.in(name).Finish(resource, name)
}

// end ends the remaining jobs.
func (s *story) end() {
	s.t.Helper()
	for name, j := range s.jobs {
		if !s.in(name).Ended(j.kind, name) {
			s.in(name).WaitForPhase(j.kind, name, "Running")
			s.finish(name)
		}
	}
	for name, j := range s.jobs {
		s.in(name).WaitForPhase(j.kind, name, "Succeeded")
	}
}

// judge checks in the audit log that each job ran once, from its release to its end, and not before the jobs that it
// had to wait for had ended.
func (s *story) judge() {
	s.t.Helper()
	log := s.env.Log(s.t.Context())
	lives := map[string]audit.Life{}
	for name, j := range s.jobs {
		life, err := log.Life(j.kind, j.namespace, name)
		harness.Must(s.t, err)
		lives[name] = life
		pods := 1
		if j.kind == "TFJob" {
			pods = 3
		}
		if len(life.Dequeued) != 1 || len(life.Released) != 1 || len(life.Runs) != 1 || len(life.Pods) != pods || life.Outcome != "Succeeded" {
			s.t.Errorf("%s was dequeued %d, released %d, running %d times, had %d pods, and ended as %q; want once each, %d pods, and Succeeded",
				name, len(life.Dequeued), len(life.Released), len(life.Runs), len(life.Pods), life.Outcome, pods)
			return
		}
	}
	for _, c := range slices.Concat(rounds...) {
		for _, name := range c.ends {
			if !lives[name].Ended.Before(lives[c.next].Dequeued[0]) {
				s.t.Errorf("%s: %s went before %s had ended", c.name, c.next, name)
			}
		}
	}
}
