package main

import (
	"fmt"
	"slices"
)

// story is what was seen.
type story []frame

// endedWell reports whether each job has ended as it should.
func (s story) endedWell() error {
	if len(s) == 0 {
		return fmt.Errorf("nothing was seen")
	}
	for _, r := range s[len(s)-1].rows {
		switch {
		case r.failed():
			return fmt.Errorf("%s failed; kubectl describe %s reports why", r.job, r.job.argument())
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

// saw reports whether the job was ever seen so.
func (s story) saw(j job, so func(row) bool) bool {
	return slices.ContainsFunc(s, func(f frame) bool {
		return slices.ContainsFunc(f.rows, func(r row) bool { return r.job == j && so(r) })
	})
}

// oneAtATime is the story of two jobs of which the quota has room for one.
func (s story) oneAtATime() error {
	for _, f := range s {
		running := 0
		for _, r := range f.rows {
			if r.state == "Running" {
				running++
			}
		}
		if running > 1 {
			return fmt.Errorf("after %.1f s both jobs ran, and the quota has room for one", f.after.Seconds())
		}
	}
	second := s[0].rows[1].job
	if !s.saw(second, func(r row) bool { return r.state == "Queuing" }) {
		return fmt.Errorf("%s was never shown as Queuing", second.name)
	}
	return nil
}

// someWaited is the story of more jobs than the quota has room for: each asks for
// something, and the first to come run while others wait for quota.
func (s story) someWaited() error {
	waited := 0
	for _, r := range s[0].rows {
		if cpu, _ := s.asked(r.job); cpu == "" {
			return fmt.Errorf("%s asked for no cpu", r.job)
		}
		if s.saw(r.job, func(r row) bool { return r.phase == "Enqueued" && r.reason == "QuotaExceeded" }) {
			waited++
		}
	}
	switch waited {
	case 0:
		return fmt.Errorf("no job was shown waiting for quota")
	case len(s[0].rows):
		return fmt.Errorf("all jobs were shown waiting for quota, the first one too")
	}
	return nil
}

// asked is what the job's unit asked for.
func (s story) asked(j job) (cpu, memory string) {
	for _, f := range s {
		for _, r := range f.rows {
			if r.job == j && r.cpu+r.memory != "" {
				cpu, memory = r.cpu, r.memory
			}
		}
	}
	return cpu, memory
}
