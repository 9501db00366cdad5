package plan

import (
	"reflect"
	"testing"
)

var someKinds = []Kind{{Name: "Job"}, {Name: "RayCluster", Endless: true}, {Name: "Workflow", Unstoppable: true}, {Name: "JobSet", Parts: true},
	{Name: "Pod", Endless: true, Unstoppable: true, Gated: true}}

const someJobs, someAttacks = 100, 400

func TestASeedDeterminesThePlan(t *testing.T) {
	one := New(7, someJobs, 3, someKinds, someAttacks)
	if !reflect.DeepEqual(one, New(7, someJobs, 3, someKinds, someAttacks)) {
		t.Error("the same seed gives another plan")
	}
	if reflect.DeepEqual(one, New(8, someJobs, 3, someKinds, someAttacks)) {
		t.Error("another seed gives the same plan")
	}
}

func TestAPlanHasStepsOfAllKinds(t *testing.T) {
	count := map[Op]int{}
	p := New(1, someJobs, 3, someKinds, someAttacks)
	for _, s := range p.Steps {
		count[s.Op]++
	}
	for _, op := range []Op{Submit, Copy, Scale, Suspend, Resume, End, Delete, Orphan, Clear, Try, Await, KillController, StartController, KillExtensions, StartExtensions} {
		if count[op] == 0 {
			t.Errorf("no step is to %s", op)
		}
	}
	if count[Submit]+count[Copy] != someJobs || len(p.Jobs) != someJobs {
		t.Errorf("%d submissions, %d copies and %d jobs, want %d jobs", count[Submit], count[Copy], len(p.Jobs), someJobs)
	}
	if count[Try] != someAttacks {
		t.Errorf("%d attacks, want %d", count[Try], someAttacks)
	}
	for _, j := range p.Jobs {
		if j.Workers < 1 || j.Workers > MaxWorkers || j.MilliCPU < 1 || j.MilliCPU > MaxMilliCPU || j.MebiByte < 1 || j.MebiByte > MaxMebiByte || j.Place >= 3 {
			t.Errorf("job %d is out of bounds: %+v", j.Number, j)
		}
		if j.CopyOf != 0 && p.Job(j.CopyOf).Kind != j.Kind {
			t.Errorf("job %d is a %s, but a copy of a %s", j.Number, j.Kind, p.Job(j.CopyOf).Kind)
		}
	}
}

func TestThereAreAttacksWithEveryIdentityVerbAndField(t *testing.T) {
	made := map[Attack]int{}
	for seed := range uint64(10) {
		p := New(seed, someJobs, 3, someKinds, someAttacks)
		for _, s := range p.Steps {
			if s.Op != Try {
				continue
			}
			made[s.Attack]++
			if j := p.Job(s.Job); j.Place == 0 || s.Attack.Object == Part && j.Kind != "JobSet" || s.Attack.Field == Gate && j.Kind != "Pod" {
				t.Errorf("%s, which is a %s in place %d", s, j.Kind, j.Place)
			}
		}
	}
	for _, a := range attacks() {
		if made[a] == 0 {
			t.Errorf("never: %s", a)
		}
	}
	for _, s := range New(1, someJobs, 3, someKinds, 0).Steps {
		if s.Op == Try {
			t.Fatal("there is an attack although none is wanted")
		}
	}
}

// life is the state of a job between steps.
type life string

const (
	unknown  life = ""
	living   life = "living"
	ended    life = "ended"
	orphaned life = "orphaned"
)

func TestStepsFollowTheLifeOfTheirJob(t *testing.T) {
	lasts := map[Op]life{Submit: living, Copy: living, End: ended, Delete: ended, Orphan: orphaned, Clear: ended}
	for seed := range uint64(20) {
		p := New(seed, someJobs, 3, someKinds, someAttacks)
		jobs := map[int]life{}
		var down Op
		for i, s := range p.Steps {
			switch s.Op {
			case KillController, KillExtensions:
				if down != "" {
					t.Fatalf("seed %d: step %d is to %s after %s", seed, i, s, down)
				}
				down = s.Op
				continue
			case StartController, StartExtensions:
				if (s.Op == StartController) != (down == KillController) || down == "" {
					t.Fatalf("seed %d: step %d is to %s after %q", seed, i, s, down)
				}
				down = ""
				continue
			case Await:
				if down != "" {
					t.Fatalf("seed %d: step %d is to %s after %s", seed, i, s, down)
				}
				continue
			}
			want := living
			switch s.Op {
			case Submit, Copy:
				want = unknown
			case Clear:
				want = orphaned
			}
			if jobs[s.Job] != want {
				t.Fatalf("seed %d: step %d is to %s, which is %q", seed, i, s, jobs[s.Job])
			}
			if s.Op == Scale && (s.Workers < 1 || s.Workers > MaxWorkers) {
				t.Fatalf("seed %d: step %d is to %s", seed, i, s)
			}
			if next, changes := lasts[s.Op]; changes {
				jobs[s.Job] = next
			}
		}
		for number := range someJobs {
			if jobs[number+1] != ended {
				t.Errorf("seed %d: at the end job %d is %q", seed, number+1, jobs[number+1])
			}
		}
		if down != "" {
			t.Errorf("seed %d: at the end nothing reverts %s", seed, down)
		}
	}
}
