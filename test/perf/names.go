package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	quotav1beta1 "kube-queue.dev/kube-queue/apis/quota/v1beta1"
	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/pkg/bounds"
	"kube-queue.dev/kube-queue/pkg/generated/clientset/versioned"
	"kube-queue.dev/kube-queue/test/perf/report"
	"kube-queue.dev/kube-queue/test/perf/rig"
)

const namesHelp = `
Runs both programs. In one namespace, units that request resources with the longest names that
are allowed, each name only once, are created and deleted again, several times. Meanwhile units of
another namespace come and go, and the status of the quota tree must show each of them. At the end,
the memory that the programs use must be what it was before, which is measured after as many units
with ordinary names have come and gone: tables of Go programs keep their size.`

// The namespaces of the run, which are groups of the quota tree.
const (
	namingNamespace = "perf-names"
	othersNamespace = "perf-others"
)

// namesFlags are the flags of the command names.
type namesFlags struct {
	units, names, rounds, inFlight int
	keep                           bool
	pprof                          string
}

func namesCommand() command {
	return command{
		name: "names", summary: "measure what is left of units with ever new names of resources", help: namesHelp,
		prepare: func(flags *pflag.FlagSet) measure {
			f := &namesFlags{}
			flags.IntVar(&f.units, "units", 10_000, "`NUMBER` of units at a time")
			flags.IntVar(&f.names, "names", 8, fmt.Sprintf("`NUMBER` of resources of a unit, at most %d", bounds.Resources-1))
			flags.IntVar(&f.rounds, "rounds", 10, "`NUMBER` of times that the units are created and deleted")
			flags.IntVar(&f.inFlight, "in-flight", 32, "`NUMBER` of concurrent requests")
			flags.StringVar(&f.pprof, "pprof", "", "`DIR` for heap profiles of both programs, before and after")
			flags.BoolVar(&f.keep, "keep", false, "keep the logs of the cluster and the programs and print their folder")
			return f.measure
		},
	}
}

func (f *namesFlags) measure(ctx context.Context, progress io.Writer) (*report.Report, error) {
	if f.units < 1 || f.rounds < 1 || f.inFlight < 1 || f.names < 1 || f.names >= bounds.Resources {
		return nil, fmt.Errorf("%w: names: --units, --rounds and --in-flight must be 1 or more, and --names from 1 to %d", errUsage, bounds.Resources-1)
	}
	return withRig(ctx, rig.Options{OnlyAPI: true, Profiling: true, Log: progress}, f.keep, progress,
		func(ctx context.Context, r *rig.Rig) (*report.Report, error) {
			run, err := f.prepare(r, progress)
			if err != nil {
				return nil, err
			}
			return run.measure(ctx)
		})
}

// namesRun is one run on a rig.
type namesRun struct {
	*namesFlags
	rig      *rig.Rig
	queue    versioned.Interface
	progress io.Writer
	programs []*rig.Program
	// patience is how long the programs may take to forget, and rest how long they are given to free what
	// they need for a short time only.
	patience, rest time.Duration
}

func (f *namesFlags) prepare(r *rig.Rig, progress io.Writer) (*namesRun, error) {
	config := r.Cluster.Config()
	config.QPS = -1
	queue, err := versioned.NewForConfig(config)
	// The controller forgets every 5 minutes.
	return &namesRun{namesFlags: f, rig: r, queue: queue, progress: progress, patience: 6 * time.Minute, rest: time.Minute}, err
}

func (n *namesRun) measure(ctx context.Context) (*report.Report, error) {
	if err := n.start(ctx, map[string][]string{rig.Controller: nil, rig.Extensions: {"--enabled-extensions=job"}}); err != nil {
		return nil, err
	}
	figures := report.New("names", "", n.rig.Version, nil)
	units := figures.Section("units")
	units.Count("at a time", n.units)
	units.Count("rounds", n.rounds)
	units.Count("names of resources", n.units*n.names*n.rounds)
	if err := n.other(ctx, -1, 1); err != nil { // what is only allocated once is not counted
		return nil, err
	}
	empty, err := n.heaps(ctx)
	if err != nil {
		return nil, err
	}
	if err := n.round(ctx, "ordinary units", "ordinary", 0); err != nil {
		return nil, err
	}
	before, err := n.least(ctx)
	if err != nil {
		return nil, err
	}
	if err := n.profile(ctx, "before"); err != nil {
		return nil, err
	}
	shown, err := n.whileOthersAreShown(ctx, n.play)
	if err != nil {
		return nil, err
	}
	figures.Section("other units meanwhile").Add("shown in the status of the tree", float64(shown), "", report.AtLeast(1))
	after, err := n.waitUntilForgotten(ctx, before)
	if err != nil {
		return nil, err
	}
	if err := n.profile(ctx, "after"); err != nil {
		return nil, err
	}
	for i, program := range n.programs {
		memory := figures.Section("memory of " + program.Name)
		memory.Add("without units", report.MiB(empty[i]), "MiB", nil)
		memory.Add("before", report.MiB(before[i]), "MiB", nil)
		memory.Add("after", report.MiB(after[i]), "MiB", nil)
		memory.Add("after, of before", float64(after[i])/float64(before[i]), "", report.AtMost(mostLeft))
	}
	use, err := n.rig.Use()
	if err != nil {
		return nil, err
	}
	for _, program := range n.programs {
		figures.Section("memory of "+program.Name).Add("peak, resident", report.MiB(use[program.Name].Peak), "MiB", nil)
	}
	for _, program := range n.programs {
		err = errors.Join(err, program.Stop())
	}
	return figures, err
}

// mostLeft is the greatest allowed ratio of the memory after all units are gone to that before.
const mostLeft = 1.1

// start applies the tree and starts the programs with their arguments.
func (n *namesRun) start(ctx context.Context, programs map[string][]string) error {
	if err := n.rig.MakeNamespaces(ctx, []string{namingNamespace, othersNamespace}); err != nil {
		return err
	}
	tree := fmt.Sprintf(`{"apiVersion":"scheduling.sigs.k8s.io/v1beta1","kind":"ElasticQuotaTree","metadata":{"name":"perf","namespace":"kube-system"},"spec":{"root":{
		"name":"root","max":{"cpu":"1000000"},"children":[{"name":"naming","namespaces":["%s"]},{"name":"others","namespaces":["%s"]}]}}}`, namingNamespace, othersNamespace)
	if err := n.rig.ApplyTree(ctx, []byte(tree)); err != nil {
		return err
	}
	for name, args := range programs {
		program, err := n.rig.Run(ctx, name, args...)
		if err != nil {
			return err
		}
		n.programs = append(n.programs, program)
	}
	return nil
}

// heaps returns the memory that the programs use.
func (n *namesRun) heaps(ctx context.Context) ([]int64, error) {
	heaps := make([]int64, len(n.programs))
	for i, program := range n.programs {
		var err error
		if heaps[i], err = program.LiveHeap(ctx); err != nil {
			return nil, err
		}
	}
	return heaps, nil
}

// profile writes a heap profile of each program if profiles are wanted.
func (n *namesRun) profile(ctx context.Context, when string) error {
	if n.pprof == "" {
		return nil
	}
	for _, program := range n.programs {
		if err := program.HeapProfile(ctx, filepath.Join(n.pprof, program.Name+".names."+when+".pprof")); err != nil {
			return err
		}
	}
	return nil
}

// least returns the least memory that the programs use while they rest.
func (n *namesRun) least(ctx context.Context) (least []int64, err error) {
	for end := time.Now().Add(n.rest); ; {
		now, err := n.heaps(ctx)
		if err != nil {
			return nil, err
		}
		if least == nil {
			least = now
		}
		for i := range least {
			least[i] = min(least[i], now[i])
		}
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-time.After(time.Second):
		}
		if time.Now().After(end) {
			return least, nil
		}
	}
}

// play creates and deletes the units with the long names in rounds.
func (n *namesRun) play(ctx context.Context) error {
	for round := range n.rounds {
		what := fmt.Sprintf("round %d of %d, units", round+1, n.rounds)
		if err := n.round(ctx, what, fmt.Sprint(round), n.names); err != nil {
			return err
		}
	}
	return nil
}

// round creates units and deletes them. It is over when the tree shows none of them. Their names, and
// those of so many resources that each requests, contain the name of the round.
func (n *namesRun) round(ctx context.Context, what, round string, names int) error {
	unit := func(i int) string { return fmt.Sprintf("unit-%s-%05d", round, i) }
	if err := concurrently(ctx, n.progress, n.inFlight, what, n.units, func(ctx context.Context, i int) error {
		list := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1m")}
		for j := range names {
			list[corev1.ResourceName(longName(fmt.Sprintf("%s-%d-%d", round, i, j)))] = resource.MustParse("1")
		}
		return n.createUnit(ctx, namingNamespace, unit(i), list)
	}); err != nil {
		return err
	}
	if err := n.waitForTree(ctx, "units are admitted", func(jobs map[string]int32) bool { return jobs["root/naming"] == int32(n.units) }); err != nil {
		return err
	}
	if err := concurrently(ctx, n.progress, n.inFlight, what+" deleted", n.units, func(ctx context.Context, i int) error {
		return n.queue.SchedulingV1alpha1().QueueUnits(namingNamespace).Delete(ctx, unit(i), metav1.DeleteOptions{})
	}); err != nil {
		return err
	}
	return n.waitForTree(ctx, "units are gone", func(jobs map[string]int32) bool { return jobs["root/naming"] == 0 })
}

// longName returns a name of a resource that is as long as it may be and ends with the text.
func longName(text string) string {
	part := strings.Repeat("x", 63)
	prefix := strings.Join([]string{part, part, part, strings.Repeat("x", 61)}, ".")
	return prefix + "/" + strings.Repeat("x", 63-len(text)) + text
}

func (n *namesRun) createUnit(ctx context.Context, namespace, name string, list corev1.ResourceList) error {
	_, err := n.queue.SchedulingV1alpha1().QueueUnits(namespace).Create(ctx, &v1alpha1.QueueUnit{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: v1alpha1.QueueUnitSpec{
			ConsumerRef: v1alpha1.ConsumerReference{APIVersion: "example.com/v1", Kind: "Thing", Name: name, Namespace: namespace},
			Resource:    list,
		}}, metav1.CreateOptions{})
	return err
}

// whileOthersAreShown creates and deletes units in the other namespace until do has ended, one at a
// time, and returns of how many the tree has shown that they came and went.
func (n *namesRun) whileOthersAreShown(ctx context.Context, do func(context.Context) error) (shown int, err error) {
	ended := make(chan error, 1)
	go func() { ended <- do(ctx) }()
	for {
		if err := n.other(ctx, shown, 1); err != nil {
			return shown, errors.Join(err, <-ended)
		}
		shown++
		select {
		case err := <-ended:
			return shown, err
		default:
		}
	}
}

// other creates and deletes a unit that requests so many CPUs, and waits until the tree shows both.
func (n *namesRun) other(ctx context.Context, i, cpu int) error {
	name := fmt.Sprint("other-", i+1)
	if err := n.createUnit(ctx, othersNamespace, name, corev1.ResourceList{corev1.ResourceCPU: *resource.NewQuantity(int64(cpu), resource.DecimalSI)}); err != nil {
		return err
	}
	if err := n.waitForTree(ctx, "another unit is admitted", func(jobs map[string]int32) bool { return jobs["root/others"] == 1 }); err != nil {
		return err
	}
	if err := n.queue.SchedulingV1alpha1().QueueUnits(othersNamespace).Delete(ctx, name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
		return err
	}
	return n.waitForTree(ctx, "another unit is gone", func(jobs map[string]int32) bool { return jobs["root/others"] == 0 })
}

// waitForTree waits until the status of the tree is as wanted, given the number of jobs of each node.
func (n *namesRun) waitForTree(ctx context.Context, what string, as func(jobs map[string]int32) bool) error {
	return n.wait(ctx, errors.New("the status of the tree does not show that "+what), func(ctx context.Context) (bool, error) {
		tree, err := n.queue.QuotaV1beta1().ElasticQuotaTrees(quotav1beta1.TreeNamespace).Get(ctx, "perf", metav1.GetOptions{})
		if err != nil {
			return false, fmt.Errorf("reading the quota tree: %w", err)
		}
		jobs := map[string]int32{}
		for _, node := range tree.Status.Nodes {
			jobs[node.Path] = node.Jobs
		}
		return len(jobs) > 0 && as(jobs), nil
	})
}

var errNotForgotten = errors.New("the programs have not forgotten what is gone")

// waitUntilForgotten returns the memory of the programs as soon as it is as small as it must become, or
// when their time is over. The report shows whether it is too much.
func (n *namesRun) waitUntilForgotten(ctx context.Context, before []int64) (after []int64, err error) {
	err = n.wait(ctx, errNotForgotten, func(ctx context.Context) (bool, error) {
		now, err := n.heaps(ctx)
		if err != nil {
			return false, errors.Join(err, context.Cause(ctx))
		}
		after = now
		for i := range after {
			if float64(after[i]) > mostLeft*float64(before[i]) {
				return false, nil
			}
		}
		return true, nil
	})
	if errors.Is(err, errNotForgotten) && after != nil {
		err = nil
	}
	return after, err
}

// wait waits until the condition holds. late is the error if it does not in time.
func (n *namesRun) wait(ctx context.Context, late error, holds func(context.Context) (bool, error)) error {
	ctx, cancel := context.WithTimeoutCause(ctx, n.patience, late)
	defer cancel()
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	for {
		if is, err := holds(ctx); err != nil || is {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-ticker.C:
		}
	}
}
