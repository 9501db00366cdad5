package main

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	quotav1beta1 "kube-queue.dev/kube-queue/apis/quota/v1beta1"
	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/test/perf/rig"
)

const namesHelp = `
Runs both programs. In one namespace, units that request resources with the longest names that
are allowed, each name only once, are created and deleted again, several times. Meanwhile units of
another namespace come and go, and the status of the quota tree must show each of them. At the end,
the memory that the programs use must be what it was before, which is measured after as many units
with ordinary names have come and gone: tables of Go programs keep their size.`

// The groups of the quota tree. Their namespaces have the same names with a prefix.
const (
	naming          = "naming"
	others          = "others"
	namespacePrefix = "perf-"
)

// namesRun is the command names.
type namesRun struct {
	// units is the number of units at a time, names the number of resource names per unit, and rounds how often the
	// units are created and deleted.
	units, names, rounds int
	// patience is how long the programs may take to forget: the controller forgets every 5 minutes. rest is how long
	// they get to free memory that they need only for a short time.
	patience, rest time.Duration

	*session
	programs []*rig.Program
}

func (n *namesRun) parts() ([]part, error) {
	return []part{{apiOnly(false), n.run}}, nil
}

func (n *namesRun) run(ctx context.Context, s *session) error {
	if err := n.start(ctx, s, nil, nil); err != nil {
		return err
	}
	s.figures.Section("units").Count("names of resources", n.units*n.names*n.rounds)
	if err := n.other(ctx, -1); err != nil { // one-time allocations do not count
		return err
	}
	never := func([]int64) bool { return false }
	empty, err := n.settle(ctx, 0, never)
	if err != nil {
		return err
	}
	if err := n.comeAndGo(ctx, naming, "ordinary", n.units, 0); err != nil {
		return err
	}
	before, err := n.settle(ctx, n.rest, never)
	if err != nil {
		return err
	}
	shown, err := n.whileOthersAreShown(ctx, func(ctx context.Context) error {
		for round := range n.rounds {
			s.say("round %d of %d", round+1, n.rounds)
			if err := n.comeAndGo(ctx, naming, fmt.Sprint("unit-", round), n.units, n.names); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	s.figures.Section("other units meanwhile").Add("shown in the status of the tree", float64(shown), "", rig.Bar{AtLeast: new(1.0)})
	left := func(now []int64, i int) float64 { return float64(now[i]) / float64(before[i]) }
	after, err := n.settle(ctx, n.patience, func(now []int64) bool { return max(left(now, 0), left(now, 1)) <= mostLeft })
	if err != nil {
		return err
	}
	for i, program := range n.programs {
		memory := s.figures.Section("memory of " + program.Name)
		memory.Add("without units", rig.MiB(empty[i]), "MiB")
		memory.Add("before", rig.MiB(before[i]), "MiB")
		memory.Add("after", rig.MiB(after[i]), "MiB")
		memory.Add("after, of before", left(after, i), "", rig.Bar{AtMost: new(mostLeft)})
	}
	return nil
}

// mostLeft is the largest allowed ratio of the memory after all units are gone to the memory before.
const mostLeft = 1.1

// start applies the tree and starts the programs with additional arguments.
func (n *namesRun) start(ctx context.Context, s *session, controllerArgs, extensionsArgs []string) error {
	n.session = s
	tree := quotav1beta1.ElasticQuotaNode{Name: "root", Max: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1000000")}}
	for _, group := range []string{naming, others} {
		if err := n.MakeNamespaces(ctx, namespacePrefix+group); err != nil {
			return err
		}
		tree.Children = append(tree.Children, quotav1beta1.ElasticQuotaNode{Name: group, Namespaces: []string{namespacePrefix + group}})
	}
	if err := n.ApplyTree(ctx, tree); err != nil {
		return err
	}
	controller, err := n.Run(ctx, rig.Controller, nil, controllerArgs...)
	if err != nil {
		return err
	}
	extensions, err := n.Run(ctx, rig.Extensions, nil, append(extensionsArgs, "--enabled-extensions=job")...)
	n.programs = []*rig.Program{controller, extensions}
	return err
}

// settle returns the least memory that each program has used when it is small enough or the time is over.
func (n *namesRun) settle(ctx context.Context, atMost time.Duration, enough func(least []int64) bool) (least []int64, err error) {
	for began := time.Now(); ; {
		now := make([]int64, len(n.programs))
		for i, program := range n.programs {
			if now[i], err = program.LiveHeap(ctx); err != nil {
				return nil, err
			}
			if least != nil {
				now[i] = min(now[i], least[i])
			}
		}
		if least = now; enough(least) || time.Since(began) >= atMost {
			return least, nil
		}
		if err := rig.Pass(ctx, time.Second); err != nil {
			return nil, err
		}
	}
}

// comeAndGo creates units of a group of the tree and deletes them. It returns when the tree has shown all of them,
// and then none. The prefix is in the names of the units and of the resources that they request.
func (n *namesRun) comeAndGo(ctx context.Context, group, prefix string, units, names int) error {
	namespace := namespacePrefix + group
	name := func(i int) string { return fmt.Sprintf("%s-%05d", prefix, i) }
	shown := func(units int) error {
		return n.WaitForNode(ctx, n.patience, "root/"+group, func(node quotav1beta1.ElasticQuotaNodeStatus) bool { return node.Jobs == int32(units) })
	}
	if err := n.each(ctx, "units", units, func(ctx context.Context, i int) error {
		list := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1m")}
		for j := range names {
			list[corev1.ResourceName(longName(fmt.Sprintf("%s-%d-%d", prefix, i, j)))] = resource.MustParse("1")
		}
		of := v1alpha1.ConsumerReference{APIVersion: "example.com/v1", Kind: "Thing", Name: name(i), Namespace: namespace}
		_, err := n.createUnit(ctx, of, list)
		return err
	}); err != nil {
		return err
	}
	if err := shown(units); err != nil {
		return err
	}
	if err := n.each(ctx, "units deleted", units, func(ctx context.Context, i int) error {
		return n.Queue.SchedulingV1alpha1().QueueUnits(namespace).Delete(ctx, name(i), metav1.DeleteOptions{})
	}); err != nil {
		return err
	}
	return shown(0)
}

// longName returns a resource name of the maximum length that ends with the text.
func longName(text string) string {
	part := strings.Repeat("x", 63)
	prefix := strings.Join([]string{part, part, part, strings.Repeat("x", 61)}, ".")
	return prefix + "/" + strings.Repeat("x", 63-len(text)) + text
}

// other creates and deletes a unit of the other group.
func (n *namesRun) other(ctx context.Context, i int) error {
	return n.comeAndGo(ctx, others, fmt.Sprint("other-", i+1), 1, 0)
}

// whileOthersAreShown creates and deletes units of the other group, one at a time, until do has ended. It returns how
// many of them the tree has shown.
func (n *namesRun) whileOthersAreShown(ctx context.Context, do func(context.Context) error) (shown int, err error) {
	var failed error
	err = rig.Beside(ctx, do, func(window context.Context) error {
		for window.Err() == nil && failed == nil {
			if failed = n.other(ctx, shown); failed == nil {
				shown++
			}
		}
		return failed
	})
	return shown, cmp.Or(err, failed)
}
