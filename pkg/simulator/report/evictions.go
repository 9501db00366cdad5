package report

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"kube-queue.dev/kube-queue/pkg/simulator"
)

// Preemption contains the eviction settings of a scenario.
type Preemption struct {
	Reclaim     bool `json:"reclaim"`
	WithinQueue bool `json:"withinQueue"`
	// MinRunTime is the time after its release in which a job is not evicted.
	MinRunTime Seconds `json:"minRunTimeSeconds"`
	// Victims is whether evicted jobs restart or resume, and StopsIn how long they take to stop.
	Victims simulator.Victims `json:"victims"`
	StopsIn Seconds           `json:"stopsInSeconds"`
}

// PreemptionOf returns how jobs are evicted in the scenario; nil if they are not.
func PreemptionOf(s *simulator.Scenario) *Preemption {
	if !evicting(s) {
		return nil
	}
	return &Preemption{Reclaim: s.Options.Reclaim, WithinQueue: s.Preemption.WithinQueue,
		MinRunTime: Seconds(s.Core.MinRunTime), Victims: cmp.Or(s.Victims, simulator.Restart), StopsIn: Seconds(s.StopsIn)}
}

// String describes the settings in a sentence without a period.
func (p *Preemption) String() string {
	var whom []string
	if p.Reclaim {
		whom = append(whom, "for jobs within the min of their quota (reclaim)")
	}
	if p.WithinQueue {
		whom = append(whom, "for jobs with higher priority in their queue")
	}
	text := strings.Join(whom, " and ")
	if p.MinRunTime > 0 {
		text += fmt.Sprintf("; not within %s after the release", p.MinRunTime)
	}
	if p.StopsIn > 0 {
		text += fmt.Sprintf("; evicted jobs stop after %s", p.StopsIn)
	} else {
		text += "; evicted jobs stop immediately"
	}
	if p.Victims == simulator.Resume {
		return text + " and continue where they stopped"
	}
	return text + " and start again from zero"
}

// evicting reports whether jobs can be evicted in the scenario.
func evicting(s *simulator.Scenario) bool {
	within := s.Preemption.WithinQueue
	for _, q := range s.Queues {
		within = within || q.Preemption.WithinQueue
	}
	return within || s.Options.Reclaim
}

// Evictions contains the eviction statistics of a group of jobs.
type Evictions struct {
	// Count is the number of evictions. Reclaimed are those for jobs of other quotas, Preempted those for jobs with a
	// higher priority in the same queue.
	Count     int `json:"count"`
	Reclaimed int `json:"reclaimed"`
	Preempted int `json:"preempted"`
	// Jobs is the number of jobs that were evicted.
	Jobs int `json:"jobs"`
	// Lost is the use of the report's resource by runs that were repeated, in hours, and LostPart its fraction of all
	// hours used.
	Lost     float64 `json:"lostResourceHours"`
	LostPart float64 `json:"lostPart"`
	// Later is the mean, over evicted jobs, of the total wait after evictions.
	Later Seconds `json:"waitAfterEvictionMeanSeconds"`
	// Total is the mean, over released jobs, of the total wait: until the first start and after evictions.
	Total Seconds `json:"waitTotalMeanSeconds"`
}

func (m *measured) evictions(jobs []*job) *Evictions {
	e := &Evictions{}
	var used, lost, later, total area
	released, restarted := 0, 0
	for _, j := range jobs {
		e.Count += j.Outcome.Evictions
		e.Reclaimed += j.Reclaimed
		e.Preempted += j.Preempted
		if len(j.interrupted) > 0 {
			e.Jobs++
		}
		lost.add(j.amount, int64(j.Lost))
		j.eachRun(func(from, to time.Duration) { used.add(j.amount, int64(to-from)) })
		if !j.Released {
			continue
		}
		released++
		total.add(int64(j.wait), 1)
		total.add(int64(j.later), 1)
		if len(j.interrupted) > 0 {
			restarted++
			later.add(int64(j.later), 1)
		}
	}
	e.Lost = lost.hours() / one(m.resource)
	if used.float() > 0 {
		e.LostPart = lost.float() / used.float()
	}
	e.Later, e.Total = Seconds(later.over(restarted)), Seconds(total.over(released))
	return e
}
