package simulator_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	"kube-queue.dev/kube-queue/pkg/queue"
	"kube-queue.dev/kube-queue/pkg/quota/tree"
	"kube-queue.dev/kube-queue/pkg/scheduler"
	"kube-queue.dev/kube-queue/pkg/simulator"
	"kube-queue.dev/kube-queue/test/require"
)

const gpu = "nvidia.com/gpu"

func gpus(n int64) map[string]resource.Quantity {
	return map[string]resource.Quantity{gpu: *resource.NewQuantity(n, resource.DecimalSI)}
}

// job returns a job in namespace a, or in another one with a name such as "b/name". Times are in seconds.
func job(name string, submitted, runs float64, size int64) simulator.Job {
	j := simulator.Job{Name: name, Namespace: "a", Requests: gpus(size),
		Submitted: time.Duration(submitted * float64(time.Second)), Runs: time.Duration(runs * float64(time.Second))}
	if namespace, rest, ok := strings.Cut(name, "/"); ok {
		j.Namespace, j.Name = namespace, rest
	}
	return j
}

func priority(p int32, j simulator.Job) simulator.Job {
	j.Priority = p
	return j
}

func oneLeaf(size int64) tree.Node {
	return tree.Node{Name: "root", Max: gpus(size), Children: []tree.Node{{Name: "leaf", Namespaces: []string{"a"}, Max: gpus(size)}}}
}

func twoLeaves() tree.Node {
	return tree.Node{Name: "root", Max: gpus(4), Children: []tree.Node{
		{Name: "leaf-a", Namespaces: []string{"a"}, Min: gpus(2), Max: gpus(4)},
		{Name: "leaf-b", Namespaces: []string{"b"}, Min: gpus(2), Max: gpus(4)},
	}}
}

// starts lists when each job was released, in seconds, and -1 for never.
func starts(s simulator.Scenario, r *simulator.Result) string {
	var list []string
	for i, j := range s.Jobs {
		at := -1.0
		if r.Outcomes[i].Released {
			at = r.Outcomes[i].Start.Seconds()
		}
		list = append(list, fmt.Sprintf("%s=%v", j.Name, at))
	}
	return strings.Join(list, " ")
}

func TestEachPolicyReleasesInItsOwnOrder(t *testing.T) {
	passing := []simulator.Job{job("first", 0, 10, 3), job("large", 1, 10, 2), job("small", 2, 5, 1)}
	backoff := []simulator.Job{job("first", 0, 1.5, 4), priority(5, job("high", 1, 10, 4)), job("low", 1.5, 10, 3)}
	for _, c := range []struct {
		name   string
		policy *queue.Policy
		jobs   []simulator.Job
		want   string
	}{
		{"RoundRobin lets a small job pass a large one", queue.RoundRobin, passing, "first=0 large=10 small=2"},
		{"Priority lets a small job pass a large one", queue.Priority, passing, "first=0 large=10 small=2"},
		{"Block lets nobody pass", queue.Block, passing, "first=0 large=10 small=10"},
		{"RoundRobin tries others while a refused job backs off", queue.RoundRobin, backoff, "first=0 high=11.5 low=1.5"},
		{"Priority tries the highest priority again when room is freed", queue.Priority, backoff, "first=0 high=1.5 low=11.5"},
		{"Block tries the front again when room is freed", queue.Block, backoff, "first=0 high=1.5 low=11.5"},
		{"an impossible job blocks nobody", queue.Block,
			[]simulator.Job{job("impossible", 0, 10, 5), job("first", 1, 10, 4), job("second", 2, 10, 4)}, "impossible=-1 first=1 second=11"},
		{"room freed in an instant is there for a job submitted in it", queue.Block,
			[]simulator.Job{job("first", 0, 10, 4), job("second", 10, 10, 4)}, "first=0 second=10"},
		{"a job that requests nothing and runs for no time is released at once", queue.RoundRobin,
			[]simulator.Job{job("first", 0, 10, 4), job("empty", 1, 0, 0)}, "first=0 empty=1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := simulator.Scenario{Jobs: c.jobs, Tree: oneLeaf(4), Core: scheduler.Options{Policy: c.policy}}
			r, err := simulator.Run(t.Context(), s)
			require.NoError(t, err)
			if got := starts(s, r); got != c.want {
				t.Errorf("released at %s, want %s", got, c.want)
			}
			if r.Flushes != 0 {
				t.Errorf("the core lost %d wake-ups", r.Flushes)
			}
		})
	}
}

func TestPausedBorrowingKeepsRoomForWhoIsOwed(t *testing.T) {
	jobs := []simulator.Job{
		job("b/b1", 0, 10, 1), job("b/b2", 0, 20, 1), job("b/b3", 0, 30, 1), job("b/b4", 0, 40, 1),
		job("owed", 5, 10, 2), job("b/more", 6, 100, 1),
	}
	for _, c := range []struct {
		pause bool
		want  string
	}{
		{false, "b1=0 b2=0 b3=0 b4=0 owed=30 more=10"},
		{true, "b1=0 b2=0 b3=0 b4=0 owed=20 more=30"},
	} {
		s := simulator.Scenario{Jobs: jobs, Tree: twoLeaves(), Options: tree.Options{PauseBorrowing: c.pause}, Core: scheduler.Options{Policy: queue.Block}}
		r, err := simulator.Run(t.Context(), s)
		require.NoError(t, err)
		if got := starts(s, r); got != c.want {
			t.Errorf("paused %t: released at %s, want %s", c.pause, got, c.want)
		}
	}
}

func TestAJobThatNeverRunsIsReportedWhy(t *testing.T) {
	fixed := job("fixed", 0, 1, 3)
	fixed.NonPreemptible = true
	elsewhere := job("elsewhere", 0, 1, 1)
	elsewhere.QuotaName = "leaf-b"
	for _, c := range []struct {
		name   string
		job    simulator.Job
		reason wellknown.Reason
		words  []string
	}{
		{"more than the whole quota", job("large", 0, 1, 5), wellknown.ReasonExceedsMaxQuota, []string{"root/leaf-a", gpu, "5", "4"}},
		{"a namespace without quota", job("c/lost", 0, 1, 1), wellknown.ReasonNoQuota, []string{`namespace "c"`}},
		{"not preemptible and above min", fixed, wellknown.ReasonExceedsMinQuota, []string{"root/leaf-a", "3", "2"}},
		{"a quota of others", elsewhere, wellknown.ReasonQuotaNotAllowed, []string{"leaf-b"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := simulator.Scenario{Jobs: []simulator.Job{job("before", 0, 100, 1), c.job, job("after", 50, 1, 1)}, Tree: twoLeaves()}
			r, err := simulator.Run(t.Context(), s)
			require.NoError(t, err)
			o := r.Outcomes[1]
			if o.Released || o.Reason != c.reason {
				t.Errorf("released %t, reason %q, want %q", o.Released, o.Reason, c.reason)
			}
			require.Says(t, "the message", o.Message, c.words...)
			if !r.Outcomes[0].Released || !r.Outcomes[2].Released {
				t.Errorf("others were held up: %+v", r.Outcomes)
			}
		})
	}
}

func TestAScenarioThatCannotBePlayedIsRefused(t *testing.T) {
	bad := oneLeaf(4)
	bad.Children[0].Min = gpus(5)
	negative := job("negative", 0, 1, 1)
	negative.Requests = gpus(-1)
	for _, c := range []struct {
		name  string
		jobs  []simulator.Job
		root  tree.Node
		words []string
	}{
		{"an invalid tree", []simulator.Job{job("one", 0, 1, 1)}, bad, []string{"root/leaf", "min", "5", "max"}},
		{"a tree without a name", nil, tree.Node{}, []string{"no name"}},
		{"two jobs of one name", []simulator.Job{job("one", 0, 1, 1), job("one", 5, 1, 1)}, oneLeaf(4), []string{"jobs 1 and 2", "a/one"}},
		{"a job before the start of the trace", []simulator.Job{job("early", -1, 1, 1)}, oneLeaf(4), []string{"a/early", "must be 0 or more"}},
		{"a job that ends before it begins", []simulator.Job{job("back", 0, -1, 1)}, oneLeaf(4), []string{"a/back", "must be 0 or more"}},
		{"jobs that end after the end of time", []simulator.Job{job("one", 0, 200*365*86400, 4), job("two", 0, 200*365*86400, 4)}, oneLeaf(4), []string{"more than 250 years"}},
		{"a negative request", []simulator.Job{negative}, oneLeaf(4), []string{"a/negative", gpu, "is negative"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := simulator.Run(t.Context(), simulator.Scenario{Jobs: c.jobs, Tree: c.root})
			require.ErrorSays(t, err, c.words...)
		})
	}
}

func TestARunEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	var jobs []simulator.Job
	for i := range 5000 {
		jobs = append(jobs, job(fmt.Sprintf("job-%d", i), float64(i), 1, 1))
	}
	reported := 0
	_, err := simulator.Run(ctx, simulator.Scenario{Jobs: jobs, Tree: oneLeaf(4), Progress: func(ended, all int) {
		reported++
		if all != len(jobs) || ended == 0 || ended > all {
			t.Errorf("%d of %d jobs have ended", ended, all)
		}
		cancel()
	}})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	if reported == 0 || reported > 3 {
		t.Errorf("it went on after its context had ended: progress was reported %d times", reported)
	}
}

func TestProgressEndsAtAllJobsThatEnded(t *testing.T) {
	last := -1
	jobs := []simulator.Job{job("one", 0, 1, 1), job("impossible", 0, 1, 9), job("two", 5, 1, 1)}
	_, err := simulator.Run(t.Context(), simulator.Scenario{Jobs: jobs, Tree: oneLeaf(4), Progress: func(ended, _ int) { last = ended }})
	if err != nil || last != 2 {
		t.Errorf("%d have ended, error %v", last, err)
	}
}

func TestAnEmptyTraceIsPlayed(t *testing.T) {
	r, err := simulator.Run(t.Context(), simulator.Scenario{Tree: oneLeaf(4)})
	if err != nil || len(r.Outcomes) != 0 {
		t.Errorf("result %+v, error %v", r, err)
	}
}

// crowd is a random trace with many jobs at the same time.
func crowd(r *rand.Rand) []simulator.Job {
	var jobs []simulator.Job
	for i := range 400 {
		j := job(fmt.Sprintf("%c/job-%03d", 'a'+rune(r.IntN(2)), i), float64(r.IntN(60)), float64(r.IntN(30)), int64(r.IntN(6)))
		j.Priority = int32(r.IntN(3))
		jobs = append(jobs, j)
	}
	return jobs
}

// policies returns all combinations of policies with paused borrowing, without evictions.
func policies() (list []simulator.Scenario) {
	for _, policy := range []*queue.Policy{queue.RoundRobin, queue.Block, queue.Priority} {
		for _, pause := range []bool{false, true} {
			list = append(list, simulator.Scenario{Tree: twoLeaves(), Options: tree.Options{PauseBorrowing: pause}, Core: scheduler.Options{Policy: policy}})
		}
	}
	return list
}

func TestTheSameScenarioGivesTheSameOutcomesInWhateverOrderItsJobsAre(t *testing.T) {
	for k, s := range append(policies(), evicting()...) {
		seeds := uint64(10)
		if s.Options.Reclaim { // evictions take long
			seeds = 2
		}
		for seed := range seeds {
			random := rand.New(rand.NewPCG(seed, 1))
			s.Jobs = crowd(random)
			first := outcomes(t, s)
			again := outcomes(t, s)
			random.Shuffle(len(s.Jobs), func(i, j int) { s.Jobs[i], s.Jobs[j] = s.Jobs[j], s.Jobs[i] })
			shuffled := outcomes(t, s)
			for name, o := range first {
				if again[name] != o || shuffled[name] != o {
					t.Fatalf("settings %d, seed %d: job %s: %+v, then %+v, shuffled %+v", k, seed, name, o, again[name], shuffled[name])
				}
			}
		}
	}
}

// outcomes by the names of jobs.
func outcomes(t *testing.T, s simulator.Scenario) map[string]simulator.Outcome {
	t.Helper()
	r, err := simulator.Run(t.Context(), s)
	require.NoError(t, err)
	byName := map[string]simulator.Outcome{}
	for i, o := range r.Outcomes {
		byName[s.Jobs[i].Namespace+"/"+s.Jobs[i].Name] = o
	}
	return byName
}
