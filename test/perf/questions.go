package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"kube-queue.dev/kube-queue/apis/visibility/v1alpha1"
	"kube-queue.dev/kube-queue/test/perf/pace"
	"kube-queue.dev/kube-queue/test/perf/report"
	"kube-queue.dev/kube-queue/test/perf/rig"
)

// The targets of answers: of a review, and of the plugin.
const (
	longestAnswer  = time.Second
	longestCommand = 3 * time.Second
)

// question is a kind of review, or a command of the kubectl plugin.
type question struct {
	name string
	// review returns the namespace and the content of a review with a number, from 0; args are the arguments of a command.
	resource string
	review   func(number int) (namespace string, review runtime.Object)
	args     func(number int) []string
	// longest is how long an answer may take.
	longest time.Duration
	took    report.Durations
	// failed is how often nobody has answered.
	failed, largest int
}

func (q *question) answered(took time.Duration, size int) {
	q.took, q.largest = append(q.took, took), max(q.largest, size)
}

// show adds how long all answers took. bar is how many may take too long.
func (q *question) show(s *report.Section, bar *report.Bar) {
	s.Spread(q.took, nil, nil)
	s.Add("not answered", float64(q.failed), "", report.AtMost(new(0.0)))
	s.Add("longer than "+q.longest.String(), float64(q.took.LongerThan(q.longest)), "", bar)
	s.Add("largest answer", float64(q.largest)/1024, "KiB", nil)
}

// readPages is the number of pages that the plugin reads of 1,000 groups or nodes.
const readPages = 2

// newQuestions returns the reviews that are asked in turn, as the plugin asks them, and commands of the plugin. Each is about what
// costs most: the last unit of a queue, and a page of the groups of all units and of all nodes. The pages follow each other.
func (r *reviewsRun) newQuestions() []*question {
	last := func(number int) (namespace, unit, job string) { return r.load.Last(number % r.scenario.LeafCount()) }
	offset := func(number int) int32 { return int32(number % readPages * v1alpha1.DefaultLimit) }
	meta := metav1.ObjectMeta{Name: "perf"}
	review := func(kind string, review func(number int) (namespace string, review runtime.Object)) *question {
		return &question{name: kind, resource: strings.ToLower(kind) + "s", longest: longestAnswer, review: review}
	}
	command := func(args ...string) *question {
		return &question{name: "kubectl kube-queue " + strings.Join(args, " "), longest: longestCommand, args: func(int) []string { return args }}
	}
	why := command("why", "JOB")
	why.args = func(number int) []string {
		namespace, _, job := last(number)
		return []string{"why", job, "--namespace", namespace}
	}
	return []*question{
		review("QueueUnitReview", func(number int) (string, runtime.Object) {
			namespace, unit, _ := last(number)
			return namespace, &v1alpha1.QueueUnitReview{ObjectMeta: meta, Spec: v1alpha1.QueueUnitReviewSpec{Unit: unit}}
		}),
		review("QueueReview", func(number int) (string, runtime.Object) {
			namespace, _, _ := last(number)
			spec := v1alpha1.QueueReviewSpec{AllNamespaces: true, Show: v1alpha1.ShowGroups, Offset: offset(number)}
			return namespace, &v1alpha1.QueueReview{ObjectMeta: meta, Spec: spec}
		}),
		review("QuotaReview", func(number int) (string, runtime.Object) {
			namespace, _, _ := last(number)
			return namespace, &v1alpha1.QuotaReview{ObjectMeta: meta, Spec: v1alpha1.QuotaReviewSpec{Offset: offset(number)}}
		}),
		command("list", "-A"), command("tree"), why,
	}
}

// send asks a review with a number as an administrator, who sees everything, and returns the answer.
func (r *reviewsRun) send(ctx context.Context, q *question, number int) ([]byte, error) {
	namespace, review := q.review(number)
	return r.Queue.VisibilityV1alpha1().RESTClient().Post().Namespace(namespace).Resource(q.resource).Param("dryRun", metav1.DryRunAll).
		Body(review).Do(ctx).Raw()
}

// firstAnswer is how long the controller may take until it answers.
const firstAnswer = time.Minute

// checkAnswers waits for the first answer to each review, and compares it with what exists.
func (r *reviewsRun) checkAnswers(ctx context.Context) error {
	var why v1alpha1.QueueUnitReview
	var queues v1alpha1.QueueReview
	var quotas v1alpha1.QuotaReview
	for i, into := range []any{&why, &queues, &quotas} {
		q := r.newQuestions()[i]
		var last error
		if err := pace.Until(ctx, time.Second, firstAnswer, fmt.Errorf("no answer within %v", firstAnswer), func(ctx context.Context) (bool, error) {
			answer, err := r.send(ctx, q, 0)
			if last = err; err != nil {
				return false, nil
			}
			return true, json.Unmarshal(answer, into)
		}); err != nil {
			return fmt.Errorf("%s: %w", q.name, errors.Join(err, last))
		}
	}
	if why.Status.Waiting == 0 || why.Status.Position == 0 || int(queues.Status.Selected) != r.scenario.Units() || len(queues.Status.Groups) == 0 || int(quotas.Status.Total) != r.nodes {
		return fmt.Errorf("the answers are about position %d of %d, %d units and %d nodes; %d units and %d nodes exist",
			why.Status.Position, why.Status.Waiting, queues.Status.Selected, quotas.Status.Total, r.scenario.Units(), r.nodes)
	}
	return nil
}

// ask asks all reviews in turn until asking ends, and each at least once.
func (r *reviewsRun) ask(ctx, asking context.Context) error {
	for first := true; ; first = false {
		for _, q := range r.questions {
			if q.review == nil {
				continue
			}
			if asking.Err() != nil && !first {
				return nil
			}
			began := time.Now()
			answer, err := r.send(ctx, q, len(q.took))
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			if err != nil {
				r.say("%s: %v", q.name, err)
				q.failed++
				continue
			}
			q.answered(time.Since(began), len(answer))
		}
	}
}

// fallback is what the plugin says if nobody has answered its question.
const fallback = "this is what the objects show"

// useTerminal runs each command of the plugin once.
func (r *reviewsRun) useTerminal(ctx context.Context) error {
	for _, q := range r.questions {
		if q.args == nil {
			continue
		}
		out, errs, took, err := r.RunPlugin(ctx, q.args(len(q.took))...)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil || strings.Contains(errs, fallback) {
			r.say("%s %s: %v %s", rig.Plugin, q.name, err, errs)
			q.failed++
			continue
		}
		q.answered(took, len(out))
	}
	return nil
}
