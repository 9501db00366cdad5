package failover

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"kube-queue.dev/kube-queue/test/faultproxy"
	"kube-queue.dev/kube-queue/test/harness"
)

const defaultFaults = 4

var (
	faultCount = flag.Int("faults", defaultFaults, "how often a leader fails")
	jobCount   = flag.Int("jobs", 60, "how many jobs flow meanwhile")
	seed       = flag.Uint64("seed", 0, "what the jobs are drawn from; 0: the time")
)

// patience is the maximum time without progress. A failover takes less than half of it.
const patience = 90 * time.Second

// The kinds of faults.
type kind string

const (
	asked   kind = "asked to end"
	killed  kind = "killed"
	frozen  kind = "frozen"
	hanging kind = "cut off, packets vanish"
	refused kind = "cut off, connections break"
)

var kinds = []kind{killed, frozen, hanging, refused}

// Two replicas of each program run. The leaders of the programs fail in turn while jobs run, and finally each is
// terminated. The other replica takes over, the failed one makes no further writes, and each job is released once and
// ends. The audit checker verifies that no decision was made twice and no limit was exceeded.
func TestLeadersFailWhileJobsRun(t *testing.T) {
	if testing.Short() && *faultCount == defaultFaults {
		*faultCount, *jobCount = 2, 16 // the controller is killed, and job-extensions is frozen
	}
	if *seed == 0 {
		*seed = uint64(time.Now().UnixNano())
	}
	t.Logf("to have the same jobs again: -faults=%d -jobs=%d -seed=%d", *faultCount, *jobCount, *seed)
	l := suite.Env(t, "failover")
	l.Allowed = []string{"write-budget"}  // a write without a response is repeated
	l.Audit.Grace = new(30 * time.Second) // only the next leader sees the end of the job
	programs := [][]*harness.Replica{
		pair(t, harness.Controller),
		pair(t, harness.Extensions, "--enabled-extensions="+enabled),
	}
	l.Tree(`{cpu: "6"}`)
	f := &flow{Env: l, t: t, most: *jobCount, chance: rand.New(rand.NewPCG(*seed, 0))}
	s := &story{Env: l, t: t, flow: f, times: map[kind][]time.Duration{}}
	wave := (*jobCount + *faultCount - 1) / *faultCount
	for i := range *faultCount {
		f.submit(wave)
		f.goesOn()
		// Each kind of fault hits each program. The programs take turns: otherwise the next leader could fail before
		// it has seen all jobs that ended meanwhile.
		s.strike(kinds[(i+i/len(kinds))%len(kinds)], programs[i%len(programs)])
	}
	for _, replicas := range programs {
		s.strike(asked, replicas)
	}
	f.finish()
	l.ExpectFree()
	s.report()
	s.bound()
}

func pair(t testing.TB, name string, args ...string) []*harness.Replica {
	t.Helper()
	return []*harness.Replica{suite.Replica(t, name, 1, args...).Start(), suite.Replica(t, name, 2, args...).Start()}
}

// story records the faults and the jobs.
type story struct {
	*harness.Env
	t     testing.TB
	flow  *flow
	times map[kind][]time.Duration
}

// strike applies a fault to the leader, waits until the other replica leads and jobs continue, and
// restores the failed replica as standby.
func (s *story) strike(how kind, replicas []*harness.Replica) {
	s.t.Helper()
	leader := s.Leader(replicas...)
	standby := replicas[1-slices.Index(replicas, leader)]
	began := time.Now()
	switch how {
	case asked:
		leader.Stop()
	case killed:
		leader.Kill()
	case frozen:
		leader.Freeze()
	case hanging:
		leader.Proxy.Cut(faultproxy.Hang)
	case refused:
		leader.Proxy.Cut(faultproxy.Refuse)
	}
	harness.Eventually(s.t, patience, standby.Label+" leads", func() (bool, string) {
		holder := s.Holder(standby.Name)
		return holder == standby.Identity(), fmt.Sprintf("%q holds the lease", holder)
	})
	took := time.Since(began)
	s.times[how] = append(s.times[how], took)
	s.t.Logf("%s %s: %s leads %v later", leader.Label, how, standby.Label, took.Round(time.Millisecond))
	switch how {
	case frozen:
		s.flow.goesOn() // the other replica decides, and this one's state is stale
		leader.Thaw()
		leader.WaitLost(5 * time.Second)
	case hanging, refused:
		if !leader.HasEnded() {
			s.t.Errorf("%s runs on though %s leads", leader.Label, standby.Label)
		}
		leader.WaitLost(5 * time.Second)
		leader.Proxy.Heal()
	}
	s.flow.goesOn()
	leader.Start()
}

func (s *story) report() {
	s.t.Helper()
	var all []time.Duration
	for _, how := range kinds {
		all = append(all, s.times[how]...)
		s.t.Logf("%s: %s", how, spread(s.times[how]))
	}
	s.t.Logf("all: %s", spread(all))
	s.t.Logf("%s: %s", asked, spread(s.times[asked]))
	s.t.Logf("%d jobs ended", len(s.flow.jobs))
}

// bound checks that the checker knew the lease holder for nearly all writes.
func (s *story) bound() {
	s.t.Helper()
	report, err := s.Log(s.t.Context()).Check(s.Audit)
	harness.Must(s.t, err)
	for _, c := range report.Checks {
		if c.Name != "two-leaders" {
			continue
		}
		s.t.Logf("%d writes came from whoever held the lease, %d did not", c.Checked-c.Found, c.Found)
		if c.Checked < 4*len(s.flow.jobs) { // create, dequeue, release and end of each
			s.t.Errorf("only %d writes of %d jobs were judged by who held the lease", c.Checked, len(s.flow.jobs))
		}
	}
}

// spread returns the count, minimum, median and maximum as text.
func spread(times []time.Duration) string {
	if len(times) == 0 {
		return "0 times"
	}
	sorted := slices.Sorted(slices.Values(times))
	figures := []string{fmt.Sprintf("%d times", len(sorted))}
	for _, one := range []struct {
		name string
		time time.Duration
	}{{"min", sorted[0]}, {"median", sorted[len(sorted)/2]}, {"max", sorted[len(sorted)-1]}} {
		figures = append(figures, fmt.Sprintf("%s %.1f s", one.name, one.time.Seconds()))
	}
	return strings.Join(figures, ", ")
}
