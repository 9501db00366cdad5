package main

import (
	"fmt"
	"slices"
)

// story is the sequence of all frames.
type story []frame

// endedWell returns an error unless each job has ended as expected.
func (s story) endedWell() error {
	if len(s) == 0 {
		return fmt.Errorf("no state of the jobs was seen")
	}
	for _, r := range s[len(s)-1].rows {
		switch {
		case r.failed():
			return fmt.Errorf("%s failed; run kubectl describe %s for the cause", r.job, r.job.argument())
		case r.state == deleted && !r.job.endless:
			return fmt.Errorf("%s was deleted", r.job)
		case !r.ended():
			return fmt.Errorf("%s has not ended", r.job)
		case r.job.endless && !s.saw(r.job, func(r row) bool { return r.phase == "Running" }):
			return fmt.Errorf("%s was deleted before it ran", r.job)
		}
	}
	return nil
}

// saw reports whether any row of the job satisfies so.
func (s story) saw(j job, so func(row) bool) bool {
	return slices.ContainsFunc(s, func(f frame) bool {
		return slices.ContainsFunc(f.rows, func(r row) bool { return r.job == j && so(r) })
	})
}

// someWaited checks the story of more jobs than the quota has room for: each job requests
// cpu, and some jobs run while others wait for quota.
func (s story) someWaited() error {
	waited := 0
	for _, r := range s[0].rows {
		if cpu, _ := s.requested(r.job); cpu == "" {
			return fmt.Errorf("%s requested no cpu", r.job)
		}
		if s.saw(r.job, func(r row) bool { return r.phase == "Enqueued" && r.reason == "QuotaExceeded" }) {
			waited++
		}
	}
	switch waited {
	case 0:
		return fmt.Errorf("no job waited for quota")
	case len(s[0].rows):
		return fmt.Errorf("all jobs waited for quota, including the first one")
	}
	return nil
}

// requested returns the requests of the unit of the job.
func (s story) requested(j job) (cpu, memory string) {
	for _, f := range s {
		for _, r := range f.rows {
			if r.job == j && r.cpu+r.memory != "" {
				cpu, memory = r.cpu, r.memory
			}
		}
	}
	return cpu, memory
}
