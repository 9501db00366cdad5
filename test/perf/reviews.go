package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/spf13/pflag"

	"kube-queue.dev/kube-queue/apis/visibility/v1alpha1"
	"kube-queue.dev/kube-queue/test/perf/loadgen"
	"kube-queue.dev/kube-queue/test/perf/report"
	"kube-queue.dev/kube-queue/test/perf/rig"
	"kube-queue.dev/kube-queue/test/perf/scenario"
	"kube-queue.dev/kube-queue/test/perf/wire"
)

const reviewsHelp = `
Creates units that wait in a quota tree of many nodes, starts kube-queue-controller, and
measures how long reviews and the kubectl plugin take. In all windows units end, so that
others are released. In every other window one client asks reviews one after the other, and
the commands list, tree and why of the plugin are run once each. The rates of releases with
and without questions are compared: first while units end at a rate that the machine
sustains, and then while they end as fast as possible. Then whatever the questions use of
the machine is missing for releases, and answers take longer, like all other requests.`

// The targets of answers: of a review, of the plugin, and the ratio of the rates of releases.
const (
	longestAnswer  = time.Second
	longestCommand = 3 * time.Second
	leastRatio     = 0.95
)

// fastest is which part of the units ends in a window in which units end as fast as possible.
const fastest = 40

// reviewsRun is the command reviews.
type reviewsRun struct {
	units, nodes, rounds int
	during               time.Duration
	rate                 float64

	*session
	scenario   *scenario.Scenario
	load       *loadgen.Run
	client     *wire.Client
	controller *rig.Program
	questions  []*question
}

func (r *reviewsRun) addFlags(flags *pflag.FlagSet) {
	flags.IntVar(&r.units, "units", 100_000, "least `NUMBER` of units that wait or hold quota")
	flags.IntVar(&r.nodes, "nodes", 1_000, "`NUMBER` of nodes of the quota tree")
	flags.IntVar(&r.rounds, "rounds", 3, "`NUMBER` of windows with questions, and of those without")
	flags.DurationVar(&r.during, "for", 20*time.Second, "`TIME` of a window")
	flags.Float64Var(&r.rate, "rate", 20, "`NUMBER` of units that end in a second")
}

func (r *reviewsRun) check() (rig.Options, error) {
	if r.nodes < 3 || r.units < r.nodes {
		return rig.Options{}, errors.New("--nodes must be 3 or more, and --units at least as many")
	}
	if r.rounds < 1 || r.during < time.Second || r.rate < 1 {
		return rig.Options{}, errors.New("--rounds and --rate must be 1 or more, and --for 1s or more")
	}
	// The policies do not concern what is measured, and creating the units takes less time without them.
	options := apiOnly()
	options.WithoutPolicies = true
	return options, nil
}

func (r *reviewsRun) mostFast() int { return max(1, r.units/fastest) }

func (r *reviewsRun) run(ctx context.Context, s *session) error {
	r.session = s
	// Enough are left at the end.
	paced := r.rate * r.during.Seconds() * float64(2*r.rounds)
	r.scenario = loadgen.TurnoverScenario("unit", r.nodes, r.units+int(paced)+2*r.mostFast())
	client, err := r.prepare(ctx)
	if err != nil {
		return err
	}
	defer client.Close()
	defer r.client.Close()
	stop := s.every(r.load.Progress)
	defer stop()
	if err := r.load.PlayTurnover(ctx, r.play); err != nil {
		return err
	}
	return r.controller.Stop()
}

// prepare creates all objects but the units, and the clients.
func (r *reviewsRun) prepare(ctx context.Context) (*loadgen.Client, error) {
	if err := r.InstallReviews(ctx); err != nil {
		return nil, err
	}
	client, err := r.session.prepare(ctx, r.scenario)
	if err != nil {
		return nil, err
	}
	// An administrator asks, who sees everything.
	r.client, err = wire.New(r.Cluster.Config(), rig.Tool)
	r.load = loadgen.NewRun(client, r.scenario)
	return client, err
}

// play measures while units are created and watched.
func (r *reviewsRun) play(ctx context.Context) error {
	if err := r.load.UntilCreated(ctx); err != nil {
		return err
	}
	// A controller that runs while the units are created would write a reason for each of them.
	args, err := r.AnswersReviews(ctx)
	if err != nil {
		return err
	}
	// The only replica keeps its lease, however busy the machine is.
	args = append(args, "--leader-elect-lease-duration=90s", "--leader-elect-renew-deadline=60s")
	// It has read the units when it releases the first of them.
	if r.controller, err = r.Launch(ctx, rig.Controller, policyEnv(r.scenario.Policy), args...); err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go r.controller.Guard(ctx, cancel)
	if err := r.load.UntilFull(ctx); err != nil {
		return err
	}
	s := r.figures.Section("cluster")
	s.Count("units", r.load.Units())
	s.Count("queues", r.scenario.LeafCount())
	s.Count("units that hold quota at a time", r.load.Held())
	if err := r.checkAnswers(ctx); err != nil {
		return err
	}
	if err := r.compare(ctx, fmt.Sprintf("%g units end in a second", r.rate), loadgen.Pace{During: r.during, Rate: r.rate}, r.rounds,
		report.AtLeast(leastRatio), report.AtMost(0)); err != nil {
		return err
	}
	if err := r.compare(ctx, "units end as fast as possible", loadgen.Pace{During: r.during, Most: r.mostFast()}, 1, nil, nil); err != nil {
		return err
	}
	counts := r.load.Counts()
	s = r.figures.Section("in the end")
	s.Count("units that wait or hold quota", counts.Created-counts.Ended)
	s.Count("units ended", counts.Ended)
	s.Count("units released", counts.Released)
	use, err := r.Use()
	s.Add("memory of the controller", report.MiB(use[rig.Controller].Resident), "MiB", nil)
	s.Add("peak", report.MiB(use[rig.Controller].Peak), "MiB", nil)
	return err
}

// firstAnswer is how long the controller may take until it answers.
const firstAnswer = time.Minute

// checkAnswers waits for the first answer to each question, and adds what is in them.
func (r *reviewsRun) checkAnswers(ctx context.Context) error {
	var why v1alpha1.QueueUnitReview
	var queues v1alpha1.QueueReview
	var quotas v1alpha1.QuotaReview
	for i, into := range []any{&why, &queues, &quotas} {
		q := r.newReviews()[i]
		var last error
		err := until(ctx, firstAnswer, fmt.Errorf("no answer within %v", firstAnswer), func(ctx context.Context) (bool, error) {
			last = r.client.Do(ctx, q.request(0), into)
			return last == nil, nil
		})
		if err != nil {
			return fmt.Errorf("%s: %w: %w", q.name, err, last)
		}
	}
	s := r.figures.Section("content of the first answers")
	s.Count("units waiting in the queue of a unit", int(why.Status.Waiting))
	s.Count("position of the unit", int(why.Status.Position))
	s.Count("what would admit the unit", len(why.Status.WouldAdmit))
	s.Count("units selected in all queues", int(queues.Status.Selected))
	s.Count("groups of units", int(queues.Status.Total))
	s.Count("groups listed", len(queues.Status.Groups))
	s.Count("nodes of the quota tree", int(quotas.Status.Total))
	s.Count("nodes listed", len(quotas.Status.Quotas))
	if selected := int(queues.Status.Selected); selected != r.load.Units() {
		return fmt.Errorf("the answer is about %d units; %d exist", selected, r.load.Units())
	}
	return nil
}

// compare compares windows with and without questions, in alternating order because the machine changes. bar is that of the
// rate of releases, and late that of the number of answers that take too long.
func (r *reviewsRun) compare(ctx context.Context, name string, pace loadgen.Pace, rounds int, bar, late *report.Bar) error {
	r.questions = append(r.newReviews(), r.newCommands()...)
	without, with := &side{name: "without questions", use: rig.Use{}}, &side{name: "with questions", use: rig.Use{}}
	section := r.figures.Section("releases, " + name)
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
		section.Add(fmt.Sprint("rate with questions, round ", round+1), with.last/without.last, "of that without", nil)
	}
	section.Add("rate with questions", with.rate()/without.rate(), "of that without", bar)
	without.show(section)
	with.show(section)
	answers := 0
	for _, q := range r.questions {
		if q.request != nil {
			answers += len(q.took)
		}
		q.show(r.figures.Section(q.name+", "+name), late)
	}
	more := with.cores(rig.Controller) - without.cores(rig.Controller)
	section.Count("answers to reviews", answers)
	section.Add("more processor time of the controller for each", more*with.during.Seconds()*1000/float64(max(1, answers)), "ms", nil)
	return nil
}

// side are the windows with or those without questions.
type side struct {
	name     string
	released int
	during   time.Duration
	// last is the rate of the last window.
	last    float64
	refills report.Durations
	use     rig.Use
}

func (s *side) rate() float64 { return float64(s.released) / s.during.Seconds() }

func (s *side) cores(program string) float64 {
	return s.use[program].CPU.Seconds() / s.during.Seconds()
}

func (s *side) show(section *report.Section) {
	section.Add(s.name, s.rate(), "releases/s", nil)
	section.Add(s.name+", end to next release, p50", report.Milliseconds(s.refills.Percentile(0.5)), "ms", nil)
	section.Add(s.name+", end to next release, p99", report.Milliseconds(s.refills.Percentile(0.99)), "ms", nil)
	for _, program := range []string{rig.Controller, "kube-apiserver"} {
		section.Add(s.name+", "+program, s.cores(program), "cores", nil)
	}
}

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
	before, err := r.Use()
	if err != nil {
		return err
	}
	if questions {
		start(func() error { return r.ask(ctx, asking) })
		start(func() error { return r.useTerminal(ctx) })
		start(func() error { return <-r.profile(ctx, 0, r.during/2, profile, r.controller) })
	}
	window, err := r.load.TurnOver(ctx, pace)
	after, useErr := r.Use()
	stop()
	group.Wait()
	if err := errors.Join(err, useErr, context.Cause(ctx)); err != nil {
		return err
	}
	length := window.To - window.From
	s.last = float64(window.Released) / length.Seconds()
	s.released, s.during = s.released+window.Released, s.during+length
	s.refills = append(s.refills, r.load.Refills(window)...)
	for name, usage := range after.Since(before) {
		usage.CPU += s.use[name].CPU
		s.use[name] = usage
	}
	return nil
}
