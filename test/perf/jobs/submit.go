package jobs

import (
	"context"
	"sync/atomic"
	"time"

	"kube-queue.dev/kube-queue/test/perf/pace"
)

// inFlight is how many creates are under way at once: enough that the API server is
// never without one.
const inFlight = 32

// submission creates jobs.
type submission struct {
	api       *api
	namespace string
	queue     Queue
	runTime   time.Duration
	// every is the time from one create to the next; 0 for all at once.
	every time.Duration

	created atomic.Int64
}

// run creates the jobs of these names and returns when the first create went out.
// Jobs come at their times whether earlier ones have been answered or not; what is
// late is created at once.
func (s *submission) run(ctx context.Context, names []string) (first time.Time, err error) {
	bodies := make([][]byte, len(names))
	for i, name := range names {
		if bodies[i], err = s.queue.job(s.namespace, name, s.runTime); err != nil {
			return first, err
		}
	}
	first = time.Now()
	due := func(index int) time.Duration { return time.Duration(index) * s.every }
	err = pace.InTime(ctx, first, len(bodies), due, inFlight, func(ctx context.Context, index int) error {
		if err := s.api.send(ctx, "POST", "/apis/batch/v1/namespaces/"+s.namespace+"/jobs", bodies[index]); err != nil {
			return err
		}
		s.created.Add(1)
		return nil
	})
	return first, err
}
