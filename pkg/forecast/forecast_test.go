package forecast_test

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"kube-queue.dev/kube-queue/pkg/forecast"
	"kube-queue.dev/kube-queue/pkg/resources"
)

const h = time.Hour

func expectLeft(t *testing.T, r *forecast.RunTimes, limit, ran, want time.Duration) {
	t.Helper()
	left, known := r.Left("q", forecast.Declared{Limit: limit}, ran)
	if want == 0 && known || want != 0 && (!known || (left-want).Abs() > time.Second) {
		t.Errorf("of a job with limit %v that has run for %v, %v is left (known: %t), want %v", limit, ran, left, known, want)
	}
}

func TestJobsRunForTheUsualPartOfTheirLimit(t *testing.T) {
	var r forecast.RunTimes
	expectLeft(t, &r, 10*h, 0, 10*h) // only the limit is known
	expectLeft(t, &r, 10*h, 4*h, 6*h)
	r.Ended("q", forecast.Declared{Limit: 10 * h}, 2*h)
	r.Ended("q", forecast.Declared{Limit: 20 * h}, 8*h)
	r.Ended("other", forecast.Declared{Limit: 10 * h}, 10*h)
	r.Ended("q", forecast.Declared{Limit: 10 * h}, 3*h)
	expectLeft(t, &r, 10*h, 0, 3*h)
	expectLeft(t, &r, 10*h, 3*h, 1*h) // as far as the one that used 40 %
	expectLeft(t, &r, 10*h, 5*h, 5*h) // longer than any
	expectLeft(t, &r, 0, 0, 0)        // nothing is known about jobs without a limit
}

func TestJobsWithoutALimitRunAsLongAsEarlierOnes(t *testing.T) {
	var r forecast.RunTimes
	for n := range 5 {
		expectLeft(t, &r, 0, 0, 0)
		r.Ended("q", forecast.Declared{}, time.Duration(n+1)*h)
	}
	expectLeft(t, &r, 0, 0, 3*h)
	expectLeft(t, &r, 0, 3*h, 2*h)
	expectLeft(t, &r, 0, 7*h, 7*h)
}

func TestJobsRunAsLongAsExpectedTimesTheUsualOverrunAndNoLongerThanTheirLimit(t *testing.T) {
	var r forecast.RunTimes
	left := func(limit, ran, want time.Duration) {
		t.Helper()
		if got, known := r.Left("q", forecast.Declared{Limit: limit, Expected: 2 * h}, ran); !known || (got-want).Abs() > time.Second {
			t.Errorf("with limit %v, %v is left after %v, want %v", limit, got, ran, want)
		}
	}
	left(0, 0, 2*h)
	left(0, h, h)
	left(0, 3*h, 3*h) // for as long again
	left(h, 0, h)
	for range 3 {
		r.Ended("q", forecast.Declared{Expected: h}, 3*h)
	}
	left(0, 0, 6*h)
	left(0, 4*h, 2*h)
	left(5*h, 4*h, h)
	left(5*h, 9*h, time.Second)
	expectLeft(t, &r, 0, 0, 0) // they say nothing about jobs without declared times
}

func TestTheOverrunIsThatOfMostJobsOfTheNamespace(t *testing.T) {
	var l forecast.Learned
	end := func(n int, namespace string, times float64) {
		for range n {
			l.Overran(namespace, h, time.Duration(times*float64(h)))
		}
	}
	expect := func(namespace string, want float64) {
		t.Helper()
		if got, copied := l.Overrun(namespace), l.Clone().Overrun(namespace); got != want || copied != want {
			t.Errorf("the overrun of %s is %v, in a copy %v, want %v", namespace, got, copied, want)
		}
	}
	end(4, "honest", 1)
	expect("honest", forecast.FirstOverrun)
	end(1, "honest", 1)
	expect("honest", 1)
	end(1, "liar", 10)
	expect("liar", 10*forecast.FirstOverrun) // the first job counts, but is no reason to trust the owner yet
	end(199, "liar", 10)
	expect("liar", 10)
	expect("honest", 1)
	expect("new", forecast.FirstOverrun)
	end(200, "liar", 0.01) // cautious jobs never excuse others
	expect("liar", 1)
	end(20, "liar", 1.2) // not worth a new order
	expect("liar", 1)
	end(40, "liar", 3)
	expect("liar", 3)
}

func TestTheSizeOfAJobIsRelativeToTheUsualOfWhatItRequestsMost(t *testing.T) {
	const cpu, gpu, jobs = 0, 1, 2
	var l forecast.Learned
	expect := func(want float64, requests ...resources.Amount) {
		t.Helper()
		if got := l.Size(requests); got != want {
			t.Errorf("the size of %v is %v, want %v", requests, got, want)
		}
	}
	one := resources.Amount{ID: jobs, Value: 1}
	changes := 0
	for range 60 {
		if l.Requested(resources.Vector{{ID: cpu, Value: 8}, {ID: gpu, Value: 2}, one}) {
			changes++
		}
		if changes == 0 {
			expect(1, resources.Amount{ID: gpu, Value: 8}, one)
		}
		l.Requested(resources.Vector{{ID: cpu, Value: 8}, one}) // says nothing about GPUs
	}
	expect(4, resources.Amount{ID: cpu, Value: 4}, resources.Amount{ID: gpu, Value: 8}, one)
	expect(0.5, resources.Amount{ID: gpu, Value: 1}, one)
	expect(1, resources.Amount{ID: cpu, Value: 8}, one)
	expect(1, one)
	if changes != 1 {
		t.Errorf("the usual number of GPUs changed %d times, want once", changes)
	}
	used := resources.IDs{}
	used.Add(cpu)
	l.Forget(used)
	expect(1, resources.Amount{ID: gpu, Value: 8}) // the ID means something else now
	expect(4, resources.Amount{ID: cpu, Value: 32})
}

func TestOnlyTheLastJobsCount(t *testing.T) {
	var r forecast.RunTimes
	for range 200 {
		r.Ended("q", forecast.Declared{}, 9*h)
	}
	for range 200 {
		r.Ended("q", forecast.Declared{}, h)
	}
	expectLeft(t, &r, 0, 0, h)
}

func TestManyQueuesNeedBoundedMemory(t *testing.T) {
	var r forecast.RunTimes
	for range 5 {
		r.Ended("q", forecast.Declared{}, h)
	}
	for i := range 5000 {
		r.Ended(string(rune('a'))+time.Duration(i).String(), forecast.Declared{}, h)
	}
	expectLeft(t, &r, 0, 0, 0)
}

func TestARangeHoldsAsOftenAsItSays(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for _, spread := range []float64{0.1, 0.5, 1.5} {
		var s forecast.Scores
		held, of := 0, 0
		for i := range 2000 {
			predicted := time.Duration(random.IntN(100)+5) * 10 * time.Minute
			waited := time.Duration(float64(predicted) * math.Exp(spread*random.NormFloat64()))
			if i >= 500 {
				of++
				if s.Estimate(predicted, 0).Holds(waited) {
					held++
				}
			}
			s.Started(predicted, 0, waited)
		}
		if part := float64(held) / float64(of); part < 0.72 || part > 0.95 {
			t.Errorf("with errors of e^%v, %.0f %% of the ranges hold", spread, 100*part)
		}
	}
}

func TestEstimatesAreRoundedAndOrdered(t *testing.T) {
	var s forecast.Scores
	for _, c := range []struct{ predicted, wait, earliest, latest time.Duration }{
		{-h, time.Minute, time.Minute, time.Minute},
		{0, time.Minute, time.Minute, time.Minute},
		{100 * time.Second, 2 * time.Minute, time.Minute, 4 * time.Minute},
		{2*h + 3*time.Minute, 2 * h, h, 4*h + 15*time.Minute},
		{10*24*h + h, 240 * h, 120 * h, 480 * h},
	} {
		e := s.Estimate(c.predicted, 0)
		if e.Wait != c.wait || e.Earliest > c.earliest || e.Latest < c.wait || (e.Latest-c.latest).Abs() > c.latest/10 {
			t.Errorf("%v is %v, %v to %v", c.predicted, e.Wait, e.Earliest, e.Latest)
		}
	}
	for range 600 { // the worst errors do not overflow
		s.Started(0, 0, math.MaxInt64)
		s.Started(math.MaxInt64-h, 0, 0)
	}
	if e := s.Estimate(30*24*h, 0); e.Earliest > e.Wait || e.Latest < e.Wait || e.Latest > 51*30*24*h {
		t.Errorf("%+v", e)
	}
}

// Wrong predictions for similar jobs are corrected: here, short jobs pass longer ones.
func TestAnEstimateIsCorrectedByTheErrorsOfSimilarJobs(t *testing.T) {
	var s forecast.Scores
	for range 60 {
		s.Started(2*h, h, h)
		s.Started(2*h, 100*h, 8*h)
	}
	for length, want := range map[time.Duration]time.Duration{h: h, 100 * h: 8 * h, 0: 2 * h} {
		if e := s.Estimate(2*h, length); e.Wait != want || e.Earliest > want || e.Latest < want {
			t.Errorf("a job of %v: %+v, want %v", length, e, want)
		}
	}
}
