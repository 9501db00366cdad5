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

// question is a kind of review.
type question struct {
	kind string
	// request returns the request with a number, from 0.
	request func(number int) wire.Request
	took    report.Durations
	// failed is how often nobody has answered.
	failed  int
	largest int64
}

// readPages is the number of pages that the plugin reads of 1,000 groups or nodes.
const readPages = 2

// questions returns the reviews that are asked in turn, as the plugin asks them. Each is about what costs most: the last unit
// of a queue, and a page of the groups of all units and of all nodes. The pages follow each other.
func (r *reviewsRun) questions() []*question {
	header := r.client.Header("application/json", "application/json")
	of := func(kind, resource string, spec func(unit string, offset int32) any) *question {
		return &question{kind: kind, request: func(number int) wire.Request {
			namespace, unit, _ := r.stage.Last(number % r.scenario.LeafCount())
			spec := spec(unit, int32(number%readPages*v1alpha1.DefaultLimit))
			body, _ := json.Marshal(map[string]any{ // strings, numbers and booleans
				"apiVersion": v1alpha1.SchemeGroupVersion.String(), "kind": kind, "metadata": map[string]any{"name": "perf"}, "spec": spec})
			return wire.Request{Method: http.MethodPost, Header: header, Body: body, Query: "dryRun=All",
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

// ask asks all questions in turn until asking ends.
func (r *reviewsRun) ask(ctx, asking context.Context) error {
	for asking.Err() == nil {
		for _, q := range r.reviews {
			began := time.Now()
			size, err := r.send(ctx, q.request(len(q.took)))
			switch {
			case err == nil:
				q.took, q.largest = append(q.took, time.Since(began)), max(q.largest, size)
			case ctx.Err() == nil && wire.Passing(err):
				fmt.Fprintf(r.progress, "%s: %v\n", q.kind, err)
				q.failed++
			default:
				return fmt.Errorf("%s: %w", q.kind, err)
			}
			timer := time.NewTimer(r.every)
			select {
			case <-timer.C:
			case <-asking.Done():
				timer.Stop()
				return nil
			}
		}
	}
	return nil
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

// terminal is a command of the kubectl plugin.
type terminal struct {
	name string
	// args returns the arguments of the run with a number, from 0.
	args func(number int) []string
	took report.Durations
	// failed is how often nobody has answered.
	failed  int
	largest int
}

func (r *reviewsRun) terminals() []*terminal {
	return []*terminal{
		{name: "list -A", args: func(int) []string { return []string{"list", "-A"} }},
		{name: "tree", args: func(int) []string { return []string{"tree"} }},
		{name: "why JOB", args: func(number int) []string {
			namespace, _, job := r.stage.Last(number % r.scenario.LeafCount())
			return []string{"why", job, "--namespace", namespace}
		}},
	}
}

// fallback is what the plugin says if nobody has answered its question.
const fallback = "this is what the objects show"

// useTerminal runs each command of the plugin once.
func (r *reviewsRun) useTerminal(ctx context.Context) error {
	for _, t := range r.commands {
		output, err := r.rig.RunPlugin(ctx, t.args(len(t.took))...)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil || strings.Contains(output.Err, fallback) {
			fmt.Fprintf(r.progress, "%s %s: %v %s\n", rig.Plugin, t.name, err, output.Err)
			t.failed++
			continue
		}
		t.took, t.largest = append(t.took, output.Took), max(t.largest, len(output.Out))
	}
	return nil
}

// answers returns how many reviews were answered.
func (r *reviewsRun) answers() int {
	count := 0
	for _, q := range r.reviews {
		count += len(q.took)
	}
	return count
}

// showAnswers adds how long all answers took while units ended at a rate. bar is how many may take too long.
func (r *reviewsRun) showAnswers(rate string, bar *report.Bar) {
	show := func(name string, took report.Durations, failed int, longest time.Duration, size int64) {
		s := r.figures.Section(name + ", " + rate)
		s.Spread(took)
		s.Add("not answered", float64(failed), "", report.AtMost(0))
		s.Add("longer than "+longest.String(), float64(took.LongerThan(longest)), "", bar)
		s.Add("largest answer", float64(size)/1024, "KiB", nil)
	}
	for _, q := range r.reviews {
		show(q.kind, q.took, q.failed, longestAnswer, q.largest)
	}
	for _, t := range r.commands {
		show("kubectl kube-queue "+t.name, t.took, t.failed, longestCommand, int64(t.largest))
	}
}
