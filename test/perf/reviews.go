package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"kube-queue.dev/kube-queue/apis/visibility/v1alpha1"
	"kube-queue.dev/kube-queue/test/perf/loadgen"
	"kube-queue.dev/kube-queue/test/perf/rig"
)

const reviewsHelp = `
Creates units that wait in a quota tree of many nodes, starts kube-queue-controller, and
measures how long reviews and the kubectl plugin take. In all windows units end, so that
others are released. In every other window one client asks reviews one after the other, and
the commands list, tree and why of the plugin are run once each. The rates of releases with
and without questions are compared: first while units end at a rate that the machine
sustains, also with pages of the plugin open in 50 browsers, and then while they end as fast as possible. Then whatever the questions use of
the machine is missing for releases, and answers take longer, like all other requests.`

// reviewsRun is the command reviews.
type reviewsRun struct {
	// units is the minimum number of units that wait or hold quota, nodes the number of nodes of the quota tree, and
	// rounds the number of windows with questions and of windows without.
	units, nodes, rounds int
	// during is the length of a window, and rate the number of units that end per second.
	during time.Duration
	rate   float64

	*session
	scenario *loadgen.Scenario
	load     *loadgen.Run
}

func (r *reviewsRun) parts() ([]part, error) {
	// The policies do not affect the measurement, and creating the units is faster without them.
	return []part{{apiOnly(true), r.run}}, nil
}

// mostFast is the number of units that end in a window in which units end as fast as possible.
func (r *reviewsRun) mostFast() int { return max(1, r.units/40) }

func (r *reviewsRun) run(ctx context.Context, s *session) (err error) {
	r.session = s
	// So enough units are left at the end.
	paced := r.rate * r.during.Seconds() * float64(4*r.rounds)
	r.scenario = loadgen.TurnoverScenario("unit", r.nodes, r.units+int(paced)+2*r.mostFast())
	if r.load, err = s.prepare(ctx, r.scenario); err != nil {
		return err
	}
	defer s.every(r.load.Progress)()
	return r.load.Play(ctx, r.play)
}

// play measures while units are created and watched.
func (r *reviewsRun) play(ctx context.Context) error {
	units := r.scenario.Units()
	if err := r.load.Reach(ctx, "all are created", func(c loadgen.Counts) bool { return c.Created == units }); err != nil {
		return err
	}
	// If the controller ran while the units are created, it would write a reason for each of them.
	_, args, err := r.AnswersReviews(ctx)
	if err != nil {
		return err
	}
	// The only replica keeps its lease, however busy the machine is.
	args = append(args, "--leader-elect-lease-duration=90s", "--leader-elect-renew-deadline=60s")
	// It has read the units when it releases the first of them.
	if _, err := r.Launch(ctx, rig.Controller, policyEnv(r.scenario.Policy), args...); err != nil {
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
	if err := r.compare(ctx, fmt.Sprintf("%g units end in a second", r.rate), r.rate, 0, r.rounds,
		rig.Bar{AtLeast: new(0.95)}, rig.Bar{AtMost: new(0.0)}); err != nil {
		return err
	}
	if err := r.browse(ctx); err != nil {
		return err
	}
	if err := r.compare(ctx, "units end as fast as possible", 0, r.mostFast(), 1, rig.Bar{}, rig.Bar{}); err != nil {
		return err
	}
	s = r.figures.Section("in the end")
	s.Count("units ended", r.load.Counts().Ended)
	s.Count("units released", r.load.Counts().Released)
	return nil
}

// compare compares windows with and without questions, in alternating order because the machine changes over time.
// bar is for the rate of releases, and late for the number of late answers.
func (r *reviewsRun) compare(ctx context.Context, name string, rate float64, most, rounds int, bar, late rig.Bar) error {
	over, end := context.WithCancel(ctx)
	end()
	reviews, commands := r.newQuestions()
	without, with := &side{name: "without questions"}, &side{name: "with questions"}
	for round := range rounds {
		order := []*side{without, with}
		if round%2 == 1 {
			slices.Reverse(order)
		}
		for _, s := range order {
			r.say("%s, %s, round %d of %d", name, s.name, round+1, rounds)
			var tasks []func(context.Context) error
			if s == with {
				tasks = append(tasks,
					func(window context.Context) error { return r.ask(ctx, window, reviews) },
					func(context.Context) error { return r.ask(ctx, over, commands) }) // once each
			}
			if err := rig.Beside(ctx, func(ctx context.Context) error { return r.window(ctx, s, rate, most) }, tasks...); err != nil {
				return err
			}
		}
	}
	section := r.figures.Section("releases, " + name)
	section.Add("rate with questions", with.rate()/without.rate(), "of that without", bar)
	for _, s := range []*side{without, with} {
		section.Add(s.name, s.rate(), "releases/s")
		section.Add(s.name+", "+rig.Controller, s.cores(), "cores")
	}
	answers := 0
	for _, q := range reviews {
		answers += len(q.took)
	}
	for _, q := range append(reviews, commands...) {
		q.show(r.figures.Section(q.name+", "+name), late)
	}
	more := with.cores() - without.cores()
	section.Add("more processor time of the controller for each review", more*with.took.Seconds()*1000/float64(max(1, answers)), "ms")
	return nil
}

// browse compares windows with and without browsers on the pages of the plugin, while units end at a rate.
func (r *reviewsRun) browse(ctx context.Context) error {
	b, err := r.openBrowsers(ctx)
	if err != nil {
		return err
	}
	unit := r.load.Last(0)
	pages := []string{"/?all=1", "/jobs/" + unit.Namespace + "/" + unit.Name, "/quotas", "/queues", "/what-if"}
	without, with := &side{}, &side{}
	for round := range 2 * r.rounds {
		s, tasks := without, []func(context.Context) error(nil)
		if round%2 == 1 {
			s = with
			for i := range mostBrowsers {
				tasks = append(tasks, func(window context.Context) error { return b.look(ctx, window, pages, i, r.say) })
			}
		}
		r.say("%d browsers, round %d of %d", len(tasks), round/2+1, r.rounds)
		if err := rig.Beside(ctx, func(ctx context.Context) error { return r.window(ctx, s, r.rate, 0) }, tasks...); err != nil {
			return err
		}
	}
	section := r.figures.Section(fmt.Sprintf("pages in %d browsers", mostBrowsers))
	section.Add("rate of releases", with.rate()/without.rate(), "of that without", rig.Bar{AtLeast: new(0.95)})
	section.Spread(b.took, rig.Bar{}, rig.Bar{})
	section.Add("longer than "+longestPage.String(), float64(b.late), "", rig.Bar{})
	section.Add("not shown", float64(b.failed), "", rig.Bar{AtMost: new(0.0)})
	section.Add("more processor time of the controller for each page", (with.cores()-without.cores())*with.took.Seconds()*1000/float64(max(1, len(b.took))), "ms")
	return nil
}

// side has the windows with questions, or those without.
type side struct {
	name     string
	released int
	// took is the time of the windows, and cpu the processor time of the controller.
	took, cpu time.Duration
}

func (s *side) rate() float64 { return float64(s.released) / s.took.Seconds() }

func (s *side) cores() float64 { return s.cpu.Seconds() / s.took.Seconds() }

// window measures one window and adds it to its side.
func (r *reviewsRun) window(ctx context.Context, s *side, rate float64, most int) error {
	use, _, err := r.session.during(ctx, func(ctx context.Context) error {
		released, took, err := r.load.TurnOver(ctx, r.during, rate, most)
		s.released, s.took = s.released+released, s.took+took
		return err
	})
	s.cpu += use[rig.Controller].CPU
	return err
}

// question is a kind of review, or a command of the kubectl plugin.
type question struct {
	name string
	// ask asks the question with a number, from 0.
	ask func(ctx context.Context, number int) (answer []byte, err error)
	// longest is the target for the time until an answer.
	longest time.Duration
	took    rig.Durations
	// failed counts the questions without an answer, and late the answers that took too long. largest is the size of
	// the largest answer.
	failed, late, largest int
}

// show adds the times of all answers. bar is how many may take too long.
func (q *question) show(s *rig.Section, bar rig.Bar) {
	s.Spread(q.took, rig.Bar{}, rig.Bar{})
	s.Add("not answered", float64(q.failed), "", rig.Bar{AtMost: new(0.0)})
	s.Add("longer than "+q.longest.String(), float64(q.late), "", bar)
	s.Add("largest answer", float64(q.largest)/1024, "KiB")
}

// readPages is the number of pages of 1,000 groups or nodes that the plugin reads. fallback is what the plugin says
// if its question had no answer.
const (
	readPages = 2
	fallback  = "this is what the objects show"
)

// newQuestions returns reviews as the plugin sends them for an administrator, who sees everything, and commands of
// the plugin. Each asks for what costs most: the last unit of a queue, or pages with the groups of all units or with
// all nodes, in turn.
func (r *reviewsRun) newQuestions() (reviews, commands []*question) {
	last := func(number int) *loadgen.Unit { return r.load.Last(number % r.scenario.LeafCount()) }
	meta := metav1.ObjectMeta{Name: "perf"}
	review := func(kind string, content func(unit string, offset int32) runtime.Object) {
		reviews = append(reviews, &question{name: kind, longest: time.Second, ask: func(ctx context.Context, number int) ([]byte, error) {
			return r.Queue.VisibilityV1alpha1().RESTClient().Post().Namespace(last(number).Namespace).Resource(strings.ToLower(kind)+"s").
				Param("dryRun", metav1.DryRunAll).Body(content(last(number).Name, int32(number%readPages*v1alpha1.DefaultLimit))).Do(ctx).Raw()
		}})
	}
	review("QueueUnitReview", func(unit string, _ int32) runtime.Object {
		return &v1alpha1.QueueUnitReview{ObjectMeta: meta, Spec: v1alpha1.QueueUnitReviewSpec{Unit: unit}}
	})
	review("QueueReview", func(_ string, offset int32) runtime.Object {
		spec := v1alpha1.QueueReviewSpec{AllNamespaces: true, Show: v1alpha1.ShowGroups, Offset: offset}
		return &v1alpha1.QueueReview{ObjectMeta: meta, Spec: spec}
	})
	review("QuotaReview", func(_ string, offset int32) runtime.Object {
		return &v1alpha1.QuotaReview{ObjectMeta: meta, Spec: v1alpha1.QuotaReviewSpec{Offset: offset}}
	})
	for _, command := range []string{"list -A", "tree", "why JOB"} {
		commands = append(commands, &question{name: "kubectl kube-queue " + command, longest: 3 * time.Second, ask: func(ctx context.Context, number int) ([]byte, error) {
			job := last(number).Job + " --namespace " + last(number).Namespace
			out, errs, err := r.RunPlugin(ctx, strings.Fields(strings.Replace(command, "JOB", job, 1))...)
			if err != nil || strings.Contains(errs, fallback) {
				err = fmt.Errorf("%v %s", err, errs)
			}
			return []byte(out), err
		}})
	}
	return reviews, commands
}

// firstAnswer is how long the controller may take until its first answer.
const firstAnswer = time.Minute

// checkAnswers waits for the first answer to each review, and compares it with the existing objects.
func (r *reviewsRun) checkAnswers(ctx context.Context) error {
	var why v1alpha1.QueueUnitReview
	var queues v1alpha1.QueueReview
	var quotas v1alpha1.QuotaReview
	reviews, _ := r.newQuestions()
	for i, into := range []any{&why, &queues, &quotas} {
		var last error
		if err := rig.Until(ctx, time.Second, firstAnswer, fmt.Errorf("no answer within %v", firstAnswer), func(ctx context.Context) (bool, error) {
			answer, err := reviews[i].ask(ctx, 0)
			if last = err; err != nil {
				return false, nil
			}
			return true, json.Unmarshal(answer, into)
		}); err != nil {
			return fmt.Errorf("%s: %w", reviews[i].name, errors.Join(err, last))
		}
	}
	if why.Status.Waiting == 0 || why.Status.Position == 0 || int(queues.Status.Selected) != r.scenario.Units() || len(queues.Status.Groups) == 0 || int(quotas.Status.Total) != r.nodes {
		return fmt.Errorf("the answers are about position %d of %d, %d units and %d nodes; %d units and %d nodes exist",
			why.Status.Position, why.Status.Waiting, queues.Status.Selected, quotas.Status.Total, r.scenario.Units(), r.nodes)
	}
	return nil
}

// ask asks questions in turn until asking ends, and each at least once.
func (r *reviewsRun) ask(ctx, asking context.Context, questions []*question) error {
	for i := 0; i < len(questions) || asking.Err() == nil; i++ {
		q := questions[i%len(questions)]
		began := time.Now()
		answer, err := q.ask(ctx, len(q.took))
		took := time.Since(began)
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil:
			r.say("%s: %v", q.name, err)
			q.failed++
			continue
		case took > q.longest:
			q.late++
		}
		q.took, q.largest = append(q.took, took), max(q.largest, len(answer))
	}
	return nil
}
