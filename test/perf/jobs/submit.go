package jobs

import (
	"context"
	"sync/atomic"
	"time"

	"kube-queue.dev/kube-queue/test/perf/pace"
)

// inFlight is the number of concurrent creates. It is high enough to saturate the API server.
const inFlight = 32

// submission creates jobs.
type submission struct {
	api       *api
	namespace string
	queue     Queue
	runTime   time.Duration
	// every is the interval between creates. 0 means no delay.
	every time.Duration

	created atomic.Int64
}

// run creates jobs with these names and returns the time of the first create. A job is created at
// its time even if earlier creates have no response yet. A late job is created immediately.
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
