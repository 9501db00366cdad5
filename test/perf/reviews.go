package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"kube-queue.dev/kube-queue/test/perf/loadgen"
	"kube-queue.dev/kube-queue/test/perf/report"
	"kube-queue.dev/kube-queue/test/perf/rig"
	"kube-queue.dev/kube-queue/test/perf/scenario"
)

const reviewsHelp = `
Creates units that wait in a quota tree of many nodes, starts kube-queue-controller, and
measures how long reviews and the kubectl plugin take. In all windows units end, so that
others are released. In every other window one client asks reviews one after the other, and
the commands list, tree and why of the plugin are run once each. The rates of releases with
and without questions are compared: first while units end at a rate that the machine
sustains, and then while they end as fast as possible. Then whatever the questions use of
the machine is missing for releases, and answers take longer, like all other requests.`

// leastRatio is the target ratio of the rates of releases.
const leastRatio = 0.95

// fastest is which part of the units ends in a window in which units end as fast as possible.
const fastest = 40

// reviewsRun is the command reviews.
type reviewsRun struct {
	// units is the least number of units that wait or hold quota, nodes the number of nodes of the quota tree, and
	// rounds the number of windows with questions, and of those without.
	units, nodes, rounds int
	// during is the time of a window, and rate the number of units that end in a second.
	during time.Duration
	rate   float64

	*session
	scenario  *scenario.Scenario
	load      *loadgen.Run
	questions []*question
}

func (r *reviewsRun) parts() ([]part, error) {
	// The policies do not concern what is measured, and creating the units takes less time without them.
	options := apiOnly()
	options.WithoutPolicies = true
	return []part{{options, r.run}}, nil
}

func (r *reviewsRun) mostFast() int { return max(1, r.units/fastest) }

func (r *reviewsRun) run(ctx context.Context, s *session) (err error) {
	r.session = s
	// Enough are left at the end.
	paced := r.rate * r.during.Seconds() * float64(2*r.rounds)
	r.scenario = loadgen.TurnoverScenario("unit", r.nodes, r.units+int(paced)+2*r.mostFast())
	if r.load, err = s.prepare(ctx, r.scenario); err != nil {
		return err
	}
	stop := s.every(r.load.Progress)
	defer stop()
	return r.load.Play(ctx, r.play)
}

// play measures while units are created and watched.
func (r *reviewsRun) play(ctx context.Context) error {
	units := r.scenario.Units()
	if err := r.load.Reach(ctx, "all are created", func(c loadgen.Counts) bool { return c.Created == units }); err != nil {
		return err
	}
	// A controller that runs while the units are created would write a reason for each of them.
	_, args, err := r.AnswersReviews(ctx)
	if err != nil {
		return err
	}
	// The only replica keeps its lease, however busy the machine is.
	args = append(args, "--leader-elect-lease-duration=90s", "--leader-elect-renew-deadline=60s")
	// It has read the units when it releases the first of them.
	controller, err := r.Launch(ctx, rig.Controller, policyEnv(r.scenario.Policy), args...)
	if err != nil {
		return err
	}
	if err := r.load.Reach(ctx, "the quota is used", func(c loadgen.Counts) bool { return c.Released >= r.load.Held() }); err != nil {
		return err
	}
	s := r.figures.Section("cluster")
	s.Count("units", units)
	s.Count("queues", r.scenario.LeafCount())
	s.Count("units that hold quota at a time", r.load.Held())
	if err := r.checkAnswers(ctx); err != nil {
		return err
	}
	if err := r.compare(ctx, fmt.Sprintf("%g units end in a second", r.rate), loadgen.Pace{During: r.during, Rate: r.rate}, r.rounds,
		report.AtLeast(new(leastRatio)), report.AtMost(new(0.0))); err != nil {
		return err
	}
	if err := r.compare(ctx, "units end as fast as possible", loadgen.Pace{During: r.during, Most: r.mostFast()}, 1, nil, nil); err != nil {
		return err
	}
	s = r.figures.Section("in the end")
	s.Count("units ended", r.load.Counts().Ended)
	s.Count("units released", r.load.Counts().Released)
	return controller.Stop()
}

// compare compares windows with and without questions, in alternating order because the machine changes. bar is that of the
// rate of releases, and late that of the number of answers that take too long.
func (r *reviewsRun) compare(ctx context.Context, name string, pace loadgen.Pace, rounds int, bar, late *report.Bar) error {
	r.questions = r.newQuestions()
	without, with := &side{name: "without questions"}, &side{name: "with questions"}
	for round := range rounds {
		order := []*side{without, with}
		if round%2 == 1 {
			order = []*side{with, without}
		}
		for _, s := range order {
			r.say("%s, %s, round %d of %d", name, s.name, round+1, rounds)
			if err := r.window(ctx, s, pace, s == with, fmt.Sprintf("%s.%d", strings.ReplaceAll(name, " ", "-"), round)); err != nil {
				return err
			}
		}
	}
	section := r.figures.Section("releases, " + name)
	section.Add("rate with questions", with.rate()/without.rate(), "of that without", bar)
	for _, s := range []*side{without, with} {
		section.Add(s.name, s.rate(), "releases/s", nil)
		section.Add(s.name+", "+rig.Controller, s.cores(), "cores", nil)
	}
	answers := 0
	for _, q := range r.questions {
		if q.review != nil {
			answers += len(q.took)
		}
		q.show(r.figures.Section(q.name+", "+name), late)
	}
	more := with.cores() - without.cores()
	section.Add("more processor time of the controller for each review", more*with.took.Seconds()*1000/float64(max(1, answers)), "ms", nil)
	return nil
}

// side are the windows with or those without questions.
type side struct {
	name     string
	released int
	// took is the time of the windows, and cpu the processor time of the controller.
	took, cpu time.Duration
}

func (s *side) rate() float64 { return float64(s.released) / s.took.Seconds() }

func (s *side) cores() float64 { return s.cpu.Seconds() / s.took.Seconds() }

// window measures one window and adds it to its side. profile is the name of its profile.
func (r *reviewsRun) window(ctx context.Context, s *side, pace loadgen.Pace, questions bool, profile string) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	asking, stop := context.WithCancel(ctx)
	defer stop()
	var group sync.WaitGroup
	start := func(do func() error) {
		group.Go(func() {
			if err := do(); err != nil {
				cancel(err)
			}
		})
	}
	if questions {
		start(func() error { return r.ask(ctx, asking) })
		start(func() error { return r.useTerminal(ctx) })
		start(func() error { return <-r.profile(ctx, profile, 0, r.during/2) })
	}
	use, _, err := r.session.during(ctx, func(ctx context.Context) error {
		released, took, err := r.load.TurnOver(ctx, pace)
		s.released, s.took = s.released+released, s.took+took
		return err
	})
	stop()
	group.Wait()
	s.cpu += use[rig.Controller].CPU
	return errors.Join(err, context.Cause(ctx))
}
