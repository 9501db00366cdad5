package jobs

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
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
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	work := make(chan []byte)
	var workers sync.WaitGroup
	for range inFlight {
		workers.Go(func() {
			for body := range work {
				if err := s.api.send(ctx, "POST", "/apis/batch/v1/namespaces/"+s.namespace+"/jobs", body); err != nil {
					cancel(err)
					return
				}
				s.created.Add(1)
			}
		})
	}
	first = time.Now()
	s.feed(ctx, first, bodies, work)
	close(work)
	workers.Wait()
	return first, context.Cause(ctx)
}

func (s *submission) feed(ctx context.Context, first time.Time, bodies [][]byte, work chan<- []byte) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for i, body := range bodies {
		if wait := time.Until(first.Add(time.Duration(i) * s.every)); wait > 0 {
			timer.Reset(wait)
			select {
			case <-timer.C:
			case <-ctx.Done():
				return
			}
		}
		select {
		case work <- body:
		case <-ctx.Done():
			return
		}
	}
}
