package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
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

// reviewsFlags are the flags of the command reviews.
type reviewsFlags struct {
	units, nodes, rounds int
	during, every        time.Duration
	rate                 float64
	pprof                string
	keep                 bool
}

func reviewsCommand() command {
	return command{
		name: "reviews", summary: "measure reviews, the kubectl plugin, and releases meanwhile", help: reviewsHelp,
		prepare: func(flags *pflag.FlagSet) measure {
			f := &reviewsFlags{}
			flags.IntVar(&f.units, "units", 100_000, "least `NUMBER` of units that wait or hold quota")
			flags.IntVar(&f.nodes, "nodes", 1_000, "`NUMBER` of nodes of the quota tree")
			flags.IntVar(&f.rounds, "rounds", 3, "`NUMBER` of windows with questions, and of those without")
			flags.DurationVar(&f.during, "for", 20*time.Second, "`TIME` of a window")
			flags.Float64Var(&f.rate, "rate", 20, "`NUMBER` of units that end in a second")
			flags.DurationVar(&f.every, "pause", 0, "`TIME` between an answer and the next question")
			flags.StringVar(&f.pprof, "pprof", "", "`DIR` for a profile of the controller while it answers; profiling takes time")
			flags.BoolVar(&f.keep, "keep", false, "keep the logs of the cluster and the controller and print their folder")
			return f.measure
		},
	}
}

func (f *reviewsFlags) measure(ctx context.Context, progress io.Writer) (*report.Report, error) {
	if f.nodes < 3 || f.units < f.nodes {
		return nil, fmt.Errorf("%w: reviews: --nodes must be 3 or more, and --units at least as many", errUsage)
	}
	if f.rounds < 1 || f.during < time.Second || f.rate < 1 || f.every < 0 {
		return nil, fmt.Errorf("%w: reviews: --rounds and --rate must be 1 or more, --for 1s or more, and --pause not negative", errUsage)
	}
	// The policies do not concern what is measured, and creating the units takes less time without them.
	return withRig(ctx, rig.Options{OnlyAPI: true, WithoutPolicies: true, Profiling: f.pprof != "", Log: progress}, f.keep, progress,
		func(ctx context.Context, r *rig.Rig) (*report.Report, error) { return f.run(ctx, r, progress) })
}

// fastest is which part of the units ends in a window in which units end as fast as possible.
const fastest = 40

// created is the number of units to create, so that enough are left at the end.
func (f *reviewsFlags) created() int {
	paced := f.rate * f.during.Seconds() * float64(2*f.rounds)
	return f.units + int(paced) + 2*f.mostFast()
}

func (f *reviewsFlags) mostFast() int { return max(1, f.units/fastest) }

// reviewsRun is one run on a rig.
type reviewsRun struct {
	*reviewsFlags
	rig        *rig.Rig
	stage      *loadgen.Run
	scenario   *scenario.Scenario
	client     *wire.Client
	controller *rig.Program
	figures    *report.Report
	progress   io.Writer

	reviews  []*question
	commands []*terminal
}

func (f *reviewsFlags) run(ctx context.Context, r *rig.Rig, progress io.Writer) (*report.Report, error) {
	run := &reviewsRun{reviewsFlags: f, rig: r, progress: progress, figures: report.New("reviews", "", r.Version, nil),
		scenario: loadgen.TurnoverScenario("unit", f.nodes, f.created())}
	client, err := run.prepare(ctx)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	defer run.client.Close()
	stop := every(progressPeriod, func() { fmt.Fprintln(progress, run.stage.Progress()) })
	defer stop()
	if err := run.stage.PlayTurnover(ctx, run.play); err != nil {
		return nil, err
	}
	return run.figures, run.controller.Stop()
}

// prepare creates all objects but the units, and the clients.
func (r *reviewsRun) prepare(ctx context.Context) (*loadgen.Client, error) {
	if r.pprof != "" {
		if err := os.MkdirAll(r.pprof, 0o755); err != nil {
			return nil, err
		}
	}
	tree, err := r.scenario.Tree()
	if err != nil {
		return nil, err
	}
	if err := errors.Join(r.rig.InstallReviews(ctx), r.rig.MakeNamespaces(ctx, r.scenario.Namespaces()), r.rig.ApplyTree(ctx, tree)); err != nil {
		return nil, err
	}
	config, _, err := r.rig.Cluster.ServiceAccountConfig(ctx, rig.Extensions)
	if err != nil {
		return nil, err
	}
	// An administrator asks, who sees everything.
	if r.client, err = wire.New(r.rig.Cluster.Config(), rig.Tool); err != nil {
		return nil, err
	}
	client, err := loadgen.NewClient(config, loadgen.Agent)
	if err != nil {
		return nil, err
	}
	r.stage, err = loadgen.NewRun(client, r.scenario)
	return client, err
}

// play measures while units are created and watched.
func (r *reviewsRun) play(ctx context.Context) error {
	if err := r.stage.UntilCreated(ctx); err != nil {
		return err
	}
	// A controller that runs while the units are created would write a reason for each of them.
	args, err := r.rig.AnswersReviews(ctx)
	if err != nil {
		return err
	}
	// The only replica keeps its lease, however busy the machine is.
	args = append(args, "--leader-elect-lease-duration=90s", "--leader-elect-renew-deadline=60s")
	// It has read the units when it releases the first of them.
	if r.controller, err = r.rig.Launch(ctx, rig.Controller, policyEnv(r.scenario.Policy), args...); err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() {
		select {
		case <-ctx.Done():
		case <-r.controller.Ended():
			cancel(fmt.Errorf("%s exited unexpectedly; see %s", rig.Controller, r.controller.Log))
		}
	}()
	if err := r.stage.UntilFull(ctx); err != nil {
		return err
	}
	s := r.figures.Section("cluster")
	s.Count("units", r.stage.Units())
	s.Count("queues", r.scenario.LeafCount())
	s.Count("units that hold quota at a time", r.stage.Held())
	if err := r.check(ctx); err != nil {
		return err
	}
	if err := r.compare(ctx, fmt.Sprintf("%g units end in a second", r.rate), loadgen.Pace{During: r.during, Rate: r.rate}, r.rounds,
		report.AtLeast(leastRatio), report.AtMost(0)); err != nil {
		return err
	}
	if err := r.compare(ctx, "units end as fast as possible", loadgen.Pace{During: r.during, Most: r.mostFast()}, 1, nil, nil); err != nil {
		return err
	}
	counts := r.stage.Counts()
	s = r.figures.Section("in the end")
	s.Count("units that wait or hold quota", counts.Created-counts.Ended)
	s.Count("units ended", counts.Ended)
	s.Count("units released", counts.Released)
	use, err := r.rig.Use()
	s.Add("memory of the controller", report.MiB(use[rig.Controller].Resident), "MiB", nil)
	s.Add("peak", report.MiB(use[rig.Controller].Peak), "MiB", nil)
	return err
}

// firstAnswer is how long the controller may take until it answers.
const firstAnswer = time.Minute

// check waits for the first answer to each question, and adds what is in them.
func (r *reviewsRun) check(ctx context.Context) error {
	var why v1alpha1.QueueUnitReview
	var queues v1alpha1.QueueReview
	var quotas v1alpha1.QuotaReview
	questions := r.questions()
	for i, into := range []any{&why, &queues, &quotas} {
		q := questions[i]
		if err := r.untilAnswered(ctx, q, into); err != nil {
			return fmt.Errorf("%s: %w", q.kind, err)
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
	if selected := int(queues.Status.Selected); selected != r.stage.Units() {
		return fmt.Errorf("the answer is about %d units; %d exist", selected, r.stage.Units())
	}
	return nil
}

func (r *reviewsRun) untilAnswered(ctx context.Context, q *question, into any) error {
	ctx, cancel := context.WithTimeoutCause(ctx, firstAnswer, fmt.Errorf("no answer within %v", firstAnswer))
	defer cancel()
	ticker := time.NewTicker(100 * time.Millisecond)
	defer ticker.Stop()
	for {
		err := r.client.Decode(ctx, q.request(0), into)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return errors.Join(context.Cause(ctx), err)
		case <-ticker.C:
		}
	}
}

// compare compares windows with and without questions, in alternating order because the machine changes. bar is that of the
// rate of releases, and late that of the number of answers that take too long.
func (r *reviewsRun) compare(ctx context.Context, name string, pace loadgen.Pace, rounds int, bar, late *report.Bar) error {
	r.reviews, r.commands = r.questions(), r.terminals()
	without, with := &side{name: "without questions"}, &side{name: "with questions"}
	var ratios []float64
	for round := range rounds {
		order := []*side{without, with}
		if round%2 == 1 {
			order = []*side{with, without}
		}
		for _, s := range order {
			fmt.Fprintf(r.progress, "%s, %s, round %d of %d\n", name, s.name, round+1, rounds)
			if err := r.window(ctx, s, pace, s == with, fmt.Sprintf("%s.%d", strings.ReplaceAll(name, " ", "-"), round)); err != nil {
				return err
			}
		}
		ratios = append(ratios, with.last/without.last)
	}
	section := r.figures.Section("releases, " + name)
	for _, s := range []*side{without, with} {
		s.show(section)
	}
	more := with.use[rig.Controller].CPU.Seconds() - without.use[rig.Controller].CPU.Seconds()/without.during.Seconds()*with.during.Seconds()
	section.Count("answers to reviews", with.answers)
	section.Add("more processor time of the controller for each", more*1000/float64(max(1, with.answers)), "ms", nil)
	section.Add("rate with questions", with.rate()/without.rate(), "of that without", bar)
	for round, ratio := range ratios {
		section.Add(fmt.Sprint("in round ", round+1), ratio, "of that without", nil)
	}
	r.showAnswers(name, late)
	return nil
}

// side are the windows with or those without questions.
type side struct {
	name              string
	released, answers int
	during            time.Duration
	// last is the rate of the last window.
	last    float64
	refills report.Durations
	use     rig.Use
}

func (s *side) rate() float64 { return float64(s.released) / s.during.Seconds() }

func (s *side) show(section *report.Section) {
	section.Add(s.name, s.rate(), "releases/s", nil)
	section.Add(s.name+", end to next release, p50", report.Milliseconds(s.refills.Percentile(0.5)), "ms", nil)
	section.Add(s.name+", end to next release, p99", report.Milliseconds(s.refills.Percentile(0.99)), "ms", nil)
	for _, program := range []string{rig.Controller, "kube-apiserver"} {
		section.Add(s.name+", "+program, s.use[program].CPU.Seconds()/s.during.Seconds(), "cores", nil)
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
	answers := r.answers()
	before, err := r.rig.Use()
	if err != nil {
		return err
	}
	if questions {
		start(func() error { return r.ask(ctx, asking) })
		start(func() error { return r.useTerminal(ctx) })
		if r.pprof != "" {
			start(func() error {
				return r.controller.CPUProfile(ctx, r.during/2, filepath.Join(r.pprof, fmt.Sprintf("%s.%s.pprof", rig.Controller, profile)))
			})
		}
	}
	window, err := r.stage.TurnOver(ctx, pace)
	after, useErr := r.rig.Use()
	stop()
	group.Wait()
	if err := errors.Join(err, useErr, context.Cause(ctx)); err != nil {
		return err
	}
	s.answers += r.answers() - answers
	length := window.To - window.From
	s.last = float64(window.Released) / length.Seconds()
	s.released, s.during = s.released+window.Released, s.during+length
	s.refills = append(s.refills, r.stage.Refills(window)...)
	if s.use == nil {
		s.use = rig.Use{}
	}
	for name, usage := range after.Since(before) {
		usage.CPU += s.use[name].CPU
		s.use[name] = usage
	}
	return nil
}
