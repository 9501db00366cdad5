package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"kube-queue.dev/kube-queue/apis/visibility/v1alpha1"
	"kube-queue.dev/kube-queue/test/perf/report"
	"kube-queue.dev/kube-queue/test/perf/rig"
	"kube-queue.dev/kube-queue/test/perf/wire"
)

// question is a kind of review, or a command of the kubectl plugin.
type question struct {
	name string
	// request returns the request of a review with a number, from 0; args are the arguments of a command.
	request func(number int) wire.Request
	args    func(number int) []string
	// longest is how long an answer may take.
	longest time.Duration
	took    report.Durations
	// failed is how often nobody has answered.
	failed  int
	largest int64
}

func (q *question) answered(took time.Duration, size int64) {
	q.took, q.largest = append(q.took, took), max(q.largest, size)
}

// show adds how long all answers took. bar is how many may take too long.
func (q *question) show(s *report.Section, bar *report.Bar) {
	s.Count("measured", len(q.took))
	s.Spread(q.took, nil, nil)
	s.Add("not answered", float64(q.failed), "", report.AtMost(0))
	s.Add("longer than "+q.longest.String(), float64(q.took.LongerThan(q.longest)), "", bar)
	s.Add("largest answer", float64(q.largest)/1024, "KiB", nil)
}

// readPages is the number of pages that the plugin reads of 1,000 groups or nodes.
const readPages = 2

// newReviews returns the reviews that are asked in turn, as the plugin asks them. Each is about what costs most: the last unit
// of a queue, and a page of the groups of all units and of all nodes. The pages follow each other.
func (r *reviewsRun) newReviews() []*question {
	of := func(kind, resource string, spec func(unit string, offset int32) any) *question {
		return &question{name: kind, longest: longestAnswer, request: func(number int) wire.Request {
			namespace, unit, _ := r.load.Last(number % r.scenario.LeafCount())
			spec := spec(unit, int32(number%readPages*v1alpha1.DefaultLimit))
			body, _ := json.Marshal(map[string]any{ // strings, numbers and booleans
				"apiVersion": v1alpha1.SchemeGroupVersion.String(), "kind": kind, "metadata": map[string]any{"name": "perf"}, "spec": spec})
			return wire.Request{Method: http.MethodPost, Body: body, Query: "dryRun=All",
				Path: "/apis/" + v1alpha1.SchemeGroupVersion.String() + "/namespaces/" + namespace + "/" + resource}
		}}
	}
	return []*question{
		of("QueueUnitReview", "queueunitreviews", func(unit string, _ int32) any { return v1alpha1.QueueUnitReviewSpec{Unit: unit} }),
		of("QueueReview", "queuereviews", func(_ string, offset int32) any {
			return v1alpha1.QueueReviewSpec{AllNamespaces: true, Show: v1alpha1.ShowGroups, Offset: offset}
		}),
		of("QuotaReview", "quotareviews", func(_ string, offset int32) any { return v1alpha1.QuotaReviewSpec{Offset: offset} }),
	}
}

func (r *reviewsRun) newCommands() []*question {
	of := func(name string, args func(int) []string) *question {
		return &question{name: "kubectl kube-queue " + name, longest: longestCommand, args: args}
	}
	return []*question{
		of("list -A", func(int) []string { return []string{"list", "-A"} }),
		of("tree", func(int) []string { return []string{"tree"} }),
		of("why JOB", func(number int) []string {
			namespace, _, job := r.load.Last(number % r.scenario.LeafCount())
			return []string{"why", job, "--namespace", namespace}
		}),
	}
}

// ask asks all reviews in turn until asking ends.
func (r *reviewsRun) ask(ctx, asking context.Context) error {
	for {
		for _, q := range r.questions {
			if q.request == nil {
				continue
			}
			if asking.Err() != nil {
				return nil
			}
			began := time.Now()
			size, err := r.send(ctx, q.request(len(q.took)))
			switch {
			case err == nil:
				q.answered(time.Since(began), size)
			case ctx.Err() == nil && wire.Passing(err):
				r.say("%s: %v", q.name, err)
				q.failed++
			default:
				return fmt.Errorf("%s: %w", q.name, err)
			}
		}
	}
}

// send sends a request and returns the size of the answer.
func (r *reviewsRun) send(ctx context.Context, request wire.Request) (int64, error) {
	answer, err := r.client.Open(ctx, request)
	if err != nil {
		return 0, err
	}
	defer answer.Close()
	return io.Copy(io.Discard, answer)
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
		q.answered(took, int64(len(out)))
	}
	return nil
}
