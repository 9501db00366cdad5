package loadgen

import (
	"context"
	"errors"
	"fmt"
	"time"

	"kube-queue.dev/kube-queue/test/perf/pace"
	"kube-queue.dev/kube-queue/test/perf/report"
	"kube-queue.dev/kube-queue/test/perf/rig"
	"kube-queue.dev/kube-queue/test/perf/scenario"
)

// ceilingLeaves is the number of namespaces of the units, as in the baseline scenario.
const ceilingLeaves = 30

// CeilingScenario returns a scenario with about this many units, at least one in each namespace.
func CeilingScenario(name string, units int) *scenario.Scenario {
	count := max(1, units/ceilingLeaves)
	return &scenario.Scenario{
		Name: name, Kind: scenario.Stream,
		Parents: scenario.Group{Count: 1}, Leaves: scenario.Group{Count: ceilingLeaves},
		Classes: []scenario.Class{{Name: name, Count: count, Shapes: 1, Requests: cpu(1)}},
	}
}

// step is one kind of write, or a sequence of writes, for each unit.
type step struct {
	name   string
	writes int
	do     func(context.Context, int) error
}

// Ceiling sends only the writes for units: each kind of write separately or, if mixed, all writes
// of a unit in sequence, for many units concurrently. use returns the use of the processes.
func (s *Run) Ceiling(ctx context.Context, mixed bool, inFlight int, use func() (rig.Use, error), figures *report.Report) error {
	apart := []step{{"create", 1, s.create}, {"release", 1, s.bareRelease}, {"end", 1, s.bareEnd}}
	steps := apart
	if mixed {
		steps = []step{{"create, release and end in turn", len(apart), func(ctx context.Context, index int) error {
			for _, step := range apart {
				if err := step.do(ctx, index); err != nil {
					return err
				}
			}
			return nil
		}}}
	}
	s.start = time.Now()
	for _, step := range steps {
		if err := s.ceilingStep(ctx, step, inFlight, use, figures); err != nil {
			return fmt.Errorf("%s: %w", step.name, err)
		}
	}
	return nil
}

func (s *Run) ceilingStep(ctx context.Context, step step, inFlight int, use func() (rig.Use, error), figures *report.Report) error {
	before, err := use()
	if err != nil {
		return err
	}
	began := time.Now()
	if err := pace.Each(ctx, len(s.units), inFlight, step.do); err != nil {
		return err
	}
	took := time.Since(began)
	after, err := use()
	if err != nil {
		return err
	}
	writes := step.writes * len(s.units)
	section := figures.Section(step.name)
	section.Count("writes", writes)
	section.Add("rate", float64(writes)/took.Seconds(), "writes/s", nil)
	for _, name := range []string{"kube-apiserver", "etcd", rig.Tool} {
		section.Add(name, report.Milliseconds(after.Since(before)[name].CPU)/float64(writes), "ms a write", nil)
	}
	return nil
}

func (s *Run) bareRelease(ctx context.Context, index int) error {
	patch, err := releasePatch("perf/perf-0/"+s.identityOf(index).namespace, time.Now())
	return errors.Join(err, s.bare(ctx, index, patch))
}

func (s *Run) bareEnd(ctx context.Context, index int) error {
	patch, err := endPatch("", time.Now())
	return errors.Join(err, s.bare(ctx, index, patch))
}

func (s *Run) bare(ctx context.Context, index int, patch []byte) error {
	id := s.identityOf(index)
	return s.retry(ctx, func() error { return s.client.PatchStatus(ctx, id.namespace, id.unit, patch) })
}
