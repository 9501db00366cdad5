package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"kube-queue.dev/kube-queue/pkg/backoff"
	"kube-queue.dev/kube-queue/pkg/files"
	"kube-queue.dev/kube-queue/pkg/queue"
	"kube-queue.dev/kube-queue/pkg/quota/tree"
	"kube-queue.dev/kube-queue/pkg/resources"
	"kube-queue.dev/kube-queue/pkg/scheduler"
	"kube-queue.dev/kube-queue/pkg/simulator"
	"kube-queue.dev/kube-queue/pkg/simulator/plot"
	"kube-queue.dev/kube-queue/pkg/simulator/quotatree"
	"kube-queue.dev/kube-queue/pkg/simulator/report"
	"kube-queue.dev/kube-queue/pkg/simulator/search"
	"kube-queue.dev/kube-queue/pkg/simulator/trace"
)

// requeues is how long evicted jobs wait until they are requeued. It is the same as in kube-queue-controller.
var requeues = backoff.Policy{Free: 3, Initial: 10 * time.Second, Max: 5 * time.Minute, Quiet: 10 * time.Minute}

func (o *options) run(ctx context.Context, stdin io.Reader, stdout, stderr io.Writer) error {
	progress := o.newProgress(stderr)
	progress.show("reading " + o.trace)
	played, err := o.readTrace(stdin)
	progress.clear()
	if err != nil {
		return err
	}
	root, source, err := o.root(played, stdin)
	if err != nil {
		return err
	}
	if o.printTree && len(o.searchMin) == 0 {
		_, err := io.WriteString(stdout, quotatree.Manifest(root))
		return err
	}
	resource, err := o.followed(played, root)
	if err != nil {
		return err
	}
	if tries := o.tries(); tries != nil {
		ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
		defer stop()
		context.AfterFunc(ctx, stop) // a second signal ends the process immediately
		if len(played.Jobs) < 2 {
			return usageError{errors.New("a search needs a trace with at least two jobs")}
		}
		found, err := search.Best(ctx, o.scenario(played.Jobs, root, o.replay[0]), tries)
		if err != nil && ctx.Err() != nil {
			return fmt.Errorf("%w; no results are printed", errInterrupted)
		}
		if err != nil {
			return err
		}
		if o.printTree {
			_, err := io.WriteString(stdout, quotatree.Manifest(quotatree.WithMins(root, found.Best.Min)))
			return err
		}
		return printSearch(found, stdout)
	}
	paper := &report.Paper{Trace: o.traceFacts(played), Tree: o.treeFacts(source, root)}
	err = o.replayAll(ctx, paper, played, root, resource, progress)
	if err != nil && !errors.Is(err, errInterrupted) {
		return err
	}
	if len(paper.Reports) > 0 {
		if err := o.print(paper, stdout); err != nil {
			return err
		}
	}
	return err
}

func (o *options) readTrace(stdin io.Reader) (*trace.Trace, error) {
	from, name, err := files.Open(o.trace, "the trace", stdin)
	if err != nil {
		return nil, err
	}
	defer from.Close()
	return trace.Read(from, name, trace.Options{Format: trace.Format(o.traceFormat), GPUResource: o.gpuResource, Tenant: trace.Field(o.tenant)})
}

// replayAll adds a report for each policy whose replay is complete. A signal stops it, and
// the complete reports are printed. Before this function runs, a signal ends the process.
func (o *options) replayAll(ctx context.Context, paper *report.Paper, played *trace.Trace, root tree.Node, resource string, progress *progress) error {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	// A second signal ends the process immediately.
	context.AfterFunc(ctx, stop)
	for i, policy := range o.replay {
		scenario := o.scenario(played.Jobs, root, policy)
		scenario.Progress = progress.of(fmt.Sprintf("%s (%d of %d)", policy, i+1, len(o.replay)))
		result, err := simulator.Run(ctx, scenario)
		progress.clear()
		if err != nil && ctx.Err() != nil {
			return fmt.Errorf("%w in %s; no results of this policy are printed", errInterrupted, progress.last())
		}
		if err != nil {
			return err
		}
		for _, name := range played.Resources {
			if o.tree != "" && !limits(root, name) {
				result.Warnings = append(result.Warnings, fmt.Sprintf("no max of the tree lists %s, so it is unlimited", name))
			}
		}
		paper.Preemption = report.PreemptionOf(&scenario)
		paper.Reports = append(paper.Reports, report.Of(&scenario, result, report.Options{Name: policy.Name, Resource: resource}))
	}
	return nil
}

// limits reports whether a max of the node, or of a node below it, lists the resource.
func limits(n tree.Node, resource string) bool {
	_, limited := n.Max[resource]
	return limited || slices.ContainsFunc(n.Children, func(child tree.Node) bool { return limits(child, resource) })
}

// scenario returns what is replayed.
func (o *options) scenario(jobs []simulator.Job, root tree.Node, policy *queue.Policy) simulator.Scenario {
	return simulator.Scenario{Jobs: jobs, Tree: root,
		Options:    tree.Options{Oversell: o.oversell, PauseBorrowing: o.pauseBorrowing, Reclaim: o.reclaim},
		Core:       scheduler.Options{Policy: policy, MinRunTime: o.minRunTime, Requeues: requeues},
		Preemption: scheduler.Preemption{WithinQueue: o.preemptWithinQueue},
		Victims:    simulator.Victims(o.victims), StopsIn: o.stopsIn, ReserveAfter: o.reserveAfter}
}

// root returns the root of the tree to try, and a description of its source.
func (o *options) root(played *trace.Trace, stdin io.Reader) (tree.Node, string, error) {
	if o.tree != "" {
		from, name, err := files.Open(o.tree, "the quota tree", stdin)
		if err != nil {
			return tree.Node{}, "", err
		}
		defer from.Close()
		root, err := quotatree.Read(from, name)
		return root, o.tree, err
	}
	for _, name := range slices.Sorted(maps.Keys(o.limits)) {
		if !slices.Contains(played.Resources, name) {
			return tree.Node{}, "", usageError{fmt.Errorf("--capacity: no job of the trace requests %s; requested resources: %s", name, strings.Join(played.Resources, ", "))}
		}
	}
	kind := quotatree.Kind(o.quotas)
	return quotatree.Propose(kind, played.Jobs, o.limits), fmt.Sprintf("proposed, %s: %s", kind, quotatree.Describe(kind)), nil
}

// followed returns the resource whose use is tracked over time.
func (o *options) followed(played *trace.Trace, root tree.Node) (string, error) {
	if o.resource != "" {
		if !slices.Contains(played.Resources, o.resource) {
			return "", usageError{fmt.Errorf("--resource: no job of the trace requests %s; requested resources: %s", o.resource, strings.Join(played.Resources, ", "))}
		}
		return o.resource, nil
	}
	for _, name := range played.Resources {
		if _, limited := root.Max[name]; limited {
			return name, nil
		}
	}
	return played.Resources[0], nil
}

func (o *options) traceFacts(t *trace.Trace) report.Trace {
	facts := report.Trace{File: o.trace, Jobs: len(t.Jobs), Resources: t.Resources, Skipped: []string{}, Renamed: []string{},
		Span: report.Seconds(t.Jobs[len(t.Jobs)-1].Submitted)}
	tenants := map[string]bool{}
	for _, j := range t.Jobs {
		tenants[j.Namespace] = true
	}
	facts.Tenants = len(tenants)
	if !t.Start.IsZero() {
		facts.Start = &t.Start
	}
	for _, s := range t.Skipped {
		facts.Skipped = append(facts.Skipped, fmt.Sprintf("%s skipped: %s (first at line %d)", report.Count(int64(s.Count)), s.Cause, s.Line))
	}
	for _, r := range t.Renamed {
		facts.Renamed = append(facts.Renamed, fmt.Sprintf("tenant %q is not a valid namespace name and is renamed to %s", r.From, r.To))
	}
	return facts
}

func (o *options) treeFacts(source string, root tree.Node) report.Tree {
	facts := report.Tree{Source: source, Proposed: o.tree == "", Max: []string{}, PauseBorrowing: o.pauseBorrowing && !o.reclaim, OversellRate: o.oversell.String()}
	for _, name := range slices.Sorted(maps.Keys(root.Max)) {
		if value, err := resources.LimitValue(name, root.Max[name]); err == nil {
			facts.Max = append(facts.Max, name+" "+resources.Format(name, value))
		}
	}
	return facts
}

func (o *options) print(paper *report.Paper, stdout io.Writer) error {
	if o.plot != "" {
		if err := os.WriteFile(o.plot, plot.Draw(paper), 0o644); err != nil {
			return fmt.Errorf("writing the plot: %w", err)
		}
	}
	switch o.output {
	case outputCSV:
		return paper.CSV(stdout)
	case outputJSON:
		return paper.JSON(stdout)
	default:
		return paper.Table(stdout)
	}
}
