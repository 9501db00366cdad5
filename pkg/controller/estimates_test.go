package controller

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	clocktesting "k8s.io/utils/clock/testing"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/pkg/forecast"
	"kube-queue.dev/kube-queue/pkg/quota"
	"kube-queue.dev/kube-queue/pkg/quota/tree"
	"kube-queue.dev/kube-queue/pkg/resources"
	"kube-queue.dev/kube-queue/pkg/scheduler"
	"kube-queue.dev/kube-queue/pkg/visibility"
	"kube-queue.dev/kube-queue/test/require"
)

// line returns a model of a queue with room for one unit. "runs" has just started, the others wait, and all have a
// limit of an hour. A new unit is one more of these.
func line(t *testing.T, now time.Time, waiting ...string) *visibility.Model {
	t.Helper()
	names := resources.NewNames()
	backend, _, err := tree.New(names, tree.Node{Name: "root", Namespaces: []string{"a"}, Max: map[string]resource.Quantity{"cpu": resource.MustParse("1m")}}, tree.Options{})
	require.NoError(t, err)
	core := scheduler.New(scheduler.Options{})
	core.Apply(now, scheduler.QuotaChanged{Backend: backend})
	for i, name := range append([]string{"runs"}, waiting...) {
		u := scheduler.Unit{Key: "a/" + name, Facts: scheduler.Facts{UID: name, Version: 1, Submitted: int64(i), MaxSeconds: 3600,
			Demand: quota.Demand{Preemptible: true, Requests: resources.Vector{{ID: names.ID("cpu"), Value: 1}}}}}
		if i == 0 {
			u.Phase, u.Attempts, u.DequeuedAt, u.Quota = scheduler.Running, 1, now, "root"
		}
		core.Apply(now, scheduler.UnitChanged{Unit: u})
	}
	core.Apply(now, scheduler.Listed{})
	core.Next(now)
	m := visibility.New(core.View(now, names), nil, "kube-queue")
	request := resources.Vector{{ID: names.ID("cpu"), Value: 1}}
	m.Read = func(unit *v1alpha1.QueueUnit) (scheduler.Unit, error) {
		return scheduler.Unit{Key: unit.Namespace + "/" + unit.Name, Facts: scheduler.Facts{UID: "new", Version: 1, Submitted: unit.CreationTimestamp.UnixMicro(),
			MaxSeconds: 3600, Demand: quota.Demand{Preemptible: true, Requests: request}}}, nil
	}
	return m
}

func TestEstimatesFollowTheRunTimesOfEarlierUnitsAndAreScored(t *testing.T) {
	clock := clocktesting.NewFakeClock(time.Unix(1_000_000, 0))
	var held, missed int
	e := NewEstimates(clock, func(is bool) {
		if is {
			held++
		} else {
			missed++
		}
	})
	expect := func(m *visibility.Model, name string, want time.Duration) forecast.Estimate {
		t.Helper()
		got, at, known := e.Of(m, "a", name)
		if known != (want > 0) || known && (got.Wait != want || !at.Equal(clock.Now())) {
			t.Errorf("%s starts in %v from %v on (known: %t), want %v", name, got.Wait, at, known, want)
		}
		return got
	}
	now := clock.Now()
	m := line(t, now, "first", "second")
	expect(m, "runs", 0)
	expect(m, "unknown", 0)
	expect(m, "first", time.Hour)
	expect(m, "second", 2*time.Hour)

	// The next prediction uses what was learned.
	for range 10 {
		e.ended("root", forecast.Declared{Limit: time.Hour}, 30*time.Minute)
	}
	expect(m, "second", 2*time.Hour)
	clock.Step(predictionLasts + time.Second)
	expect(m, "second", time.Hour)

	e.started("first", now.Add(30*time.Minute))
	e.started("second", now.Add(10*time.Minute))
	e.started("second", now.Add(10*time.Minute))
	e.started("runs", now)
	if held != 1 || missed != 1 {
		t.Errorf("%d estimates held, %d did not", held, missed)
	}
	var none *Estimates
	if _, _, known := none.Of(m, "a", "first"); known {
		t.Error("there is an estimate without Estimates")
	}
	none.ended("root", forecast.Declared{}, time.Hour)
	none.started("first", now)
}

// While the queues are played forward for one question, other questions get the previous prediction.
func TestNobodyWaitsForAPrediction(t *testing.T) {
	clock := clocktesting.NewFakeClock(time.Unix(1_000_000, 0))
	e := NewEstimates(clock, nil)
	m := line(t, clock.Now(), "first")
	e.Of(m, "a", "first")
	clock.Step(time.Hour / 2)
	e.playing = true
	if got, _, known := e.Of(m, "a", "first"); !known || got.Wait != time.Hour/2 {
		t.Errorf("known: %t, %+v", known, got)
	}
}

func TestAUnitFarBehindHasAnEstimateWhenItIsAskedAbout(t *testing.T) {
	clock := clocktesting.NewFakeClock(time.Unix(1_000_000, 0))
	e := NewEstimates(clock, nil)
	var names []string
	for i := range 150 {
		names = append(names, time.Duration(i).String())
	}
	m := line(t, clock.Now(), names...)
	if _, _, known := e.Of(m, "a", names[0]); !known {
		t.Error("the first has no estimate")
	}
	clock.Step(time.Second)
	if got, _, known := e.Of(m, "a", names[len(names)-1]); !known || got.Wait < 149*time.Hour {
		t.Errorf("known: %t, %+v", known, got)
	}
}

// The loop learns run times from ends and deletions, each once.
func TestTheLoopLearnsHowLongUnitsRan(t *testing.T) {
	clock := clocktesting.NewFakeClock(time.Unix(1_000_000, 0))
	core := scheduler.New(scheduler.Options{})
	l := &loop{clock: clock, core: core, estimates: NewEstimates(clock, nil)}
	for i, key := range []string{"a/one", "a/two", "a/three", "a/four", "a/five", "a/waits"} {
		u := scheduler.Unit{Key: key, Facts: scheduler.Facts{UID: key, Version: uint64(i + 1)}}
		if key != "a/waits" {
			u.Phase, u.Attempts, u.DequeuedAt = scheduler.Running, 1, clock.Now()
		}
		core.Apply(clock.Now(), scheduler.UnitChanged{Unit: u})
	}
	l.now = clock.Now().Add(time.Hour)
	for _, key := range []string{"a/one", "a/two", "a/three", "a/four", "a/five", "a/waits", "a/unknown"} {
		l.ended(key)
		core.Apply(l.now, scheduler.UnitGone{Key: key, UID: key})
		l.ended(key)
	}
	if left, known := l.estimates.left("", forecast.Declared{}, 0); !known || left != time.Hour {
		t.Errorf("units run for %v (known: %t)", left, known)
	}
}

func TestPredictionsCostLittle(t *testing.T) {
	clock := slowClock{clocktesting.NewFakeClock(time.Unix(1_000_000, 0)), time.Second}
	e := NewEstimates(clock, nil)
	m := line(t, clock.FakeClock.Now(), "first", "second")
	e.Of(m, "a", "first") // it seems to take a second
	predicted := e.stale
	for range 10 {
		e.Of(m, "a", "second")
	}
	if e.stale != predicted {
		t.Error("a prediction that took a second is made again within 20 s")
	}
	clock.Step(predictionCost * time.Second)
	e.Of(m, "a", "second")
	if e.stale == predicted {
		t.Error("a prediction is used for too long")
	}
}

func listsUnits(may bool) visibility.Access {
	no := func() bool { return false }
	return visibility.Access{Units: func(string) bool { return may }, Queues: no, Trees: no}
}

func TestAdviceIsRoundedAndScoredLikeAnEstimate(t *testing.T) {
	clock := clocktesting.NewFakeClock(time.Unix(1_000_000, 0))
	e := NewEstimates(clock, nil)
	m := line(t, clock.Now(), "first")
	status, err := e.Advise(m, "a", &v1alpha1.QueueUnitSpec{}, listsUnits(true))
	want := visibility.StartEstimate(e.scoresOf("root").Estimate(2*time.Hour, 0), clock.Now())
	if err != nil || status.Position != 2 || !reflect.DeepEqual(status.Start, want) {
		t.Errorf("%v, %+v, want %+v", err, status, want)
	}
	_, err = e.Advise(m, "a", &v1alpha1.QueueUnitSpec{}, listsUnits(false))
	require.ErrorSays(t, err, "you may not list QueueUnits")
	m.Read = nil
	if _, err := e.Advise(m, "a", &v1alpha1.QueueUnitSpec{}, listsUnits(true)); err == nil {
		t.Error("a model that reads no units gives advice")
	}
}

func TestAdviceCostsLittle(t *testing.T) {
	clock := slowClock{clocktesting.NewFakeClock(time.Unix(1_000_000, 0)), time.Second}
	e := NewEstimates(clock, nil)
	m := line(t, clock.FakeClock.Now(), "first")
	answered := 0
	for range 1000 { // each answer seems to take a second
		if _, err := e.Advise(m, "a", &v1alpha1.QueueUnitSpec{}, listsUnits(true)); err == nil {
			answered++
		} else if !strings.Contains(err.Error(), "ask again in ") {
			t.Fatal(err)
		}
	}
	if answered < 2 || answered > 2*1000/predictionCost {
		t.Errorf("%d answers", answered)
	}
}
