package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	quotav1beta1 "kube-queue.dev/kube-queue/apis/quota/v1beta1"
	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/test/perf/pace"
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

// namesRun is the command names.
type namesRun struct {
	// units is the number of units at a time, names that of the resources of a unit, and rounds how often the units are
	// created and deleted.
	units, names, rounds int
	// patience is how long the programs may take to forget, and rest how long they are given to free what
	// they need for a short time only. The controller forgets every 5 minutes.
	patience, rest time.Duration

	*session
	programs []*rig.Program
}

func (n *namesRun) parts() ([]part, error) {
	return []part{{apiOnly(), n.run}}, nil
}

func (n *namesRun) run(ctx context.Context, s *session) error {
	if err := n.start(ctx, s, map[string][]string{rig.Controller: nil, rig.Extensions: {"--enabled-extensions=job"}}); err != nil {
		return err
	}
	s.figures.Section("units").Count("names of resources", n.units*n.names*n.rounds)
	if err := n.other(ctx, -1); err != nil { // what is only allocated once is not counted
		return err
	}
	empty, err := n.heaps(ctx)
	if err != nil {
		return err
	}
	if err := n.round(ctx, "ordinary", 0); err != nil {
		return err
	}
	before, err := n.settle(ctx, n.rest, func([]int64) bool { return false })
	if err != nil {
		return err
	}
	shown, err := n.whileOthersAreShown(ctx, func(ctx context.Context) error {
		for round := range n.rounds {
			s.say("round %d of %d", round+1, n.rounds)
			if err := n.round(ctx, fmt.Sprint(round), n.names); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	s.figures.Section("other units meanwhile").Add("shown in the status of the tree", float64(shown), "", report.AtLeast(new(1.0)))
	after, err := n.settle(ctx, n.patience, func(now []int64) bool {
		for i := range now {
			if float64(now[i]) > mostLeft*float64(before[i]) {
				return false
			}
		}
		return true
	})
	if err != nil {
		return err
	}
	profiled := s.profile(ctx, "names", 0, time.Second)
	for i, program := range n.programs {
		memory := s.figures.Section("memory of " + program.Name)
		memory.Add("without units", report.MiB(empty[i]), "MiB", nil)
		memory.Add("before", report.MiB(before[i]), "MiB", nil)
		memory.Add("after", report.MiB(after[i]), "MiB", nil)
		memory.Add("after, of before", float64(after[i])/float64(before[i]), "", report.AtMost(new(mostLeft)))
	}
	err = <-profiled
	for _, program := range n.programs {
		err = errors.Join(err, program.Stop())
	}
	return err
}

// mostLeft is the greatest allowed ratio of the memory after all units are gone to that before.
const mostLeft = 1.1

// start applies the tree and starts the programs with their arguments.
func (n *namesRun) start(ctx context.Context, s *session, programs map[string][]string) error {
	n.session = s
	if err := n.MakeNamespaces(ctx, namingNamespace, othersNamespace); err != nil {
		return err
	}
	if err := n.ApplyTree(ctx, quotav1beta1.ElasticQuotaNode{
		Name: "root", Max: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1000000")},
		Children: []quotav1beta1.ElasticQuotaNode{{Name: "naming", Namespaces: []string{namingNamespace}}, {Name: "others", Namespaces: []string{othersNamespace}}},
	}); err != nil {
		return err
	}
	for name, args := range programs {
		program, err := n.Run(ctx, name, nil, args...)
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

// settle returns the least memory that the programs use until it is small enough, or the time is over.
func (n *namesRun) settle(ctx context.Context, atMost time.Duration, enough func(least []int64) bool) (least []int64, err error) {
	over := errors.New("the time is over")
	err = pace.Until(ctx, time.Second, atMost, over, func(ctx context.Context) (bool, error) {
		now, err := n.heaps(ctx)
		if err != nil {
			return false, err
		}
		if least == nil {
			least = now
		}
		for i := range least {
			least[i] = min(least[i], now[i])
		}
		return enough(least), nil
	})
	if errors.Is(err, over) && least != nil {
		err = nil
	}
	return least, err
}

// round creates units and deletes them. It is over when the tree shows none of them. Their names, and
// those of so many resources that each requests, contain the name of the round.
func (n *namesRun) round(ctx context.Context, round string, names int) error {
	unit := func(i int) string { return fmt.Sprintf("unit-%s-%05d", round, i) }
	if err := n.each(ctx, "units", n.units, func(ctx context.Context, i int) error {
		list := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1m")}
		for j := range names {
			list[corev1.ResourceName(longName(fmt.Sprintf("%s-%d-%d", round, i, j)))] = resource.MustParse("1")
		}
		return n.createUnit(ctx, namingNamespace, unit(i), list)
	}); err != nil {
		return err
	}
	if err := n.waitForTree(ctx, "root/naming", n.units); err != nil {
		return err
	}
	if err := n.each(ctx, "units deleted", n.units, func(ctx context.Context, i int) error {
		return n.Queue.SchedulingV1alpha1().QueueUnits(namingNamespace).Delete(ctx, unit(i), metav1.DeleteOptions{})
	}); err != nil {
		return err
	}
	return n.waitForTree(ctx, "root/naming", 0)
}

// longName returns a name of a resource that is as long as it may be and ends with the text.
func longName(text string) string {
	part := strings.Repeat("x", 63)
	prefix := strings.Join([]string{part, part, part, strings.Repeat("x", 61)}, ".")
	return prefix + "/" + strings.Repeat("x", 63-len(text)) + text
}

func (n *namesRun) createUnit(ctx context.Context, namespace, name string, requests corev1.ResourceList) error {
	of := v1alpha1.ConsumerReference{APIVersion: "example.com/v1", Kind: "Thing", Name: name, Namespace: namespace}
	_, err := n.session.createUnit(ctx, of, requests)
	return err
}

// whileOthersAreShown creates and deletes units in the other namespace until do has ended, one at a
// time, and returns of how many the tree has shown that they came and went.
func (n *namesRun) whileOthersAreShown(ctx context.Context, do func(context.Context) error) (shown int, err error) {
	ended := make(chan error, 1)
	go func() { ended <- do(ctx) }()
	for {
		if err := n.other(ctx, shown); err != nil {
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

// other creates and deletes a unit, and waits until the tree shows both.
func (n *namesRun) other(ctx context.Context, i int) error {
	name := fmt.Sprint("other-", i+1)
	if err := n.createUnit(ctx, othersNamespace, name, corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}); err != nil {
		return err
	}
	if err := n.waitForTree(ctx, "root/others", 1); err != nil {
		return err
	}
	if err := n.Queue.SchedulingV1alpha1().QueueUnits(othersNamespace).Delete(ctx, name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
		return err
	}
	return n.waitForTree(ctx, "root/others", 0)
}

// waitForTree waits until the status of the tree shows this number of units of a node.
func (n *namesRun) waitForTree(ctx context.Context, path string, units int) error {
	return n.WaitForNode(ctx, n.patience, path, func(node quotav1beta1.ElasticQuotaNodeStatus) bool { return node.Jobs == int32(units) })
}
