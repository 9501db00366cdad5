package cluster

import (
	"context"
	"fmt"
	"net/http"
)

// readinessJob is the name of jobs that are created to see that their operator acts on them.
const readinessJob = "localcluster-readiness"

// probe is a minimal suspended job with that name. It creates no pod, and its operator sets a
// condition that it is suspended.
type probe struct {
	// path is the API path of jobs of this kind.
	path string
	job  object
}

// submit creates the jobs. It retries, because the API server serves a kind only some time after
// the CRD is established.
func (s *setup) submit(ctx context.Context, probes []probe) error {
	for _, p := range probes {
		var refused error
		err := waitFor(ctx, fmt.Sprintf("create a %v", p.job["kind"]), func(ctx context.Context) error {
			err := s.api.create(ctx, p.path, p.job)
			if hasCode(err, http.StatusNotFound) {
				return err
			}
			refused = err
			return nil
		})
		if err != nil {
			return err
		}
		if refused != nil {
			return refused
		}
	}
	return nil
}

// actsOn returns the ready check of an operator. It passes, and deletes the jobs, when the operator
// has acted on all of them. Health endpoints are not sufficient, because they respond before
// controllers run.
func (s *setup) actsOn(probes []probe) func(context.Context) error {
	return func(ctx context.Context) error {
		for _, p := range probes {
			if err := s.handled(ctx, p); err != nil {
				return err
			}
		}
		for _, p := range probes {
			if err := s.api.delete(ctx, p.path+"/"+readinessJob); err != nil {
				return err
			}
		}
		return nil
	}
}

func (s *setup) handled(ctx context.Context, p probe) error {
	var found struct {
		Status struct {
			Conditions []struct{ Type, Status string }
		}
	}
	if err := s.api.get(ctx, p.path+"/"+readinessJob, &found); err != nil {
		return err
	}
	for _, condition := range found.Status.Conditions {
		if condition.Type == "Suspended" && condition.Status == "True" {
			return nil
		}
	}
	return fmt.Errorf("a suspended %v is not handled yet", p.job["kind"])
}
