package failover

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	schedulingv1alpha1 "kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/test/harness"
)

// flow is a sequence of jobs that each use one core for some seconds.
type flow struct {
	*harness.Env
	t      testing.TB
	chance *rand.Rand
	most   int
	jobs   []flowing
}

type flowing struct {
	name  string
	fails bool
}

// submit creates some of the remaining jobs.
func (f *flow) submit(count int) {
	f.t.Helper()
	var manifests strings.Builder
	for range min(count, f.most-len(f.jobs)) {
		j := flowing{name: fmt.Sprintf("job-%03d", len(f.jobs)), fails: f.chance.IntN(8) == 0}
		runs := time.Duration(1000+f.chance.IntN(3000)) * time.Millisecond
		if f.chance.IntN(5) == 0 {
			manifests.WriteString(harness.TFJob{Name: j.name, Workers: 2, CPU: "500m", Runs: runs, Fails: j.fails}.String())
		} else {
			manifests.WriteString(harness.Job{Name: j.name, CPU: "1", Runs: runs, Fails: j.fails}.String())
		}
		f.jobs = append(f.jobs, j)
	}
	if manifests.Len() > 0 {
		f.Apply(manifests.String())
	}
}

// count returns the progress of the jobs.
type count struct{ waiting, held, ended int }

func (f *flow) count() (now count) {
	f.t.Helper()
	for _, unit := range f.units() {
		switch phase := unit.Status.Phase; {
		case phase.Ended():
			now.ended++
		case phase.HoldsQuota():
			now.held++
		default:
			now.waiting++
		}
	}
	now.waiting = len(f.jobs) - now.held - now.ended
	return now
}

func (f *flow) units() []schedulingv1alpha1.QueueUnit {
	f.t.Helper()
	units, err := f.Queue.SchedulingV1alpha1().QueueUnits(f.Namespace).List(f.t.Context(), metav1.ListOptions{})
	harness.Must(f.t, err)
	return units.Items
}

// goesOn waits until further jobs are released and end, if any remain.
func (f *flow) goesOn() {
	f.t.Helper()
	began := f.count()
	want := min(began.ended+began.held+2, len(f.jobs))
	harness.Eventually(f.t, patience, "jobs go on", func() (bool, string) {
		now := f.count()
		return now.ended+now.held >= want, fmt.Sprintf("%+v", now)
	})
}

// finish waits until all jobs have ended, and checks that each succeeded and was released once.
func (f *flow) finish() {
	f.t.Helper()
	for last := -1; last < len(f.jobs); {
		harness.Eventually(f.t, patience, fmt.Sprintf("more than %d of %d jobs have ended", last, len(f.jobs)), func() (bool, string) {
			now := f.count()
			more := now.ended > last
			last = max(last, now.ended)
			return more, fmt.Sprintf("%+v", now)
		})
	}
	units := map[string]schedulingv1alpha1.QueueUnit{}
	for _, unit := range f.units() {
		units[unit.Spec.ConsumerRef.Name] = unit
	}
	for _, j := range f.jobs {
		want := schedulingv1alpha1.PhaseSucceeded
		if j.fails {
			want = schedulingv1alpha1.PhaseFailed
		}
		if s := units[j.name].Status; s.Phase != want || s.Attempts != 1 {
			f.t.Errorf("%s is %s after %d releases, want %s after one", j.name, s.Phase, s.Attempts, want)
		}
	}
}
