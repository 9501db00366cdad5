package controller

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/cache"

	schedulingv1alpha1 "kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	"kube-queue.dev/kube-queue/pkg/controller/backend"
	"kube-queue.dev/kube-queue/pkg/controller/codec"
	"kube-queue.dev/kube-queue/pkg/quota"
	"kube-queue.dev/kube-queue/pkg/quota/tree"
	"kube-queue.dev/kube-queue/pkg/resources"
)

const goodRoot = `{name: root, namespaces: [a], max: {cpu: 4}}`

// drawn is a Source whose tree the test sets.
type drawn struct {
	opts    tree.Options
	names   *resources.Names
	backend *tree.Tree
	root    tree.Node
}

func (d *drawn) Start(_ context.Context, host backend.Host) ([]cache.InformerSynced, error) {
	d.names = host.Names
	return nil, nil
}

func (d *drawn) Listed() backend.Change {
	missing := &quota.Refusal{Reason: wellknown.ReasonNoQuota, Sentence: "nothing is drawn"}
	return backend.Change{Quota: &backend.Quota{Missing: missing}}
}

// Rebuild returns the tree with nothing charged to it.
func (d *drawn) Rebuild() backend.Change {
	d.backend, _, _ = tree.New(d.names, d.root, d.opts)
	return backend.Change{Quota: &backend.Quota{Backend: d.backend}}
}

func (*drawn) Pods() backend.PodRules { return backend.PodRules{} }

func (*drawn) Keep(_, _ *schedulingv1alpha1.QueueUnitSpec) {}

func (d *drawn) Demand(unit *schedulingv1alpha1.QueueUnit) (quota.Demand, error) {
	return codec.Requests(d.names, unit)
}

// shown is a Source that records its last status.
type shown struct {
	drawn
	pending []string
}

func (s *shown) PrepareStatus(pending map[quota.NodeID]resources.Vector) func(context.Context) error {
	cpu, _ := pending[0].Get(s.names.ID("cpu"))
	s.pending = append(s.pending, fmt.Sprint(cpu))
	return func(context.Context) error { return nil }
}

func TestOnlyAStatusWriterPreparesAStatus(t *testing.T) {
	d := decide(t, tree.Options{})
	d.after(0, quotaListed, d.tree(goodRoot), unitOf("u", "", "5", ""))
	if d.figures(d.core.Pending()) != nil {
		t.Error("something is shown for one that shows nothing")
	}
	writer := &shown{drawn: *d.drawn}
	d.loop.source = writer
	if d.figures(d.core.Pending()) == nil || !slices.Equal(writer.pending, []string{"5000"}) {
		t.Errorf("the pending requests are %q", writer.pending)
	}
}

func TestWhatASourceHasSeenIsTakenInByTheLoopInItsOrder(t *testing.T) {
	d := decide(t, tree.Options{})
	var order []string
	d.emit = func(n backend.Notice) {
		order = append(order, fmt.Sprint(n.About.GetName(), " ", n.Type, " ", n.Reason, " ", n.Message))
	}
	notice := func(name string) func() backend.Change {
		about := &unstructured.Unstructured{}
		about.SetName(name)
		return func() backend.Change {
			return backend.Change{Notices: []backend.Notice{{About: about, Type: "Warning", Reason: "Odd", Message: "seen"}}}
		}
	}
	host := d.host(nil)
	host.Take(notice("first"))
	host.Take(notice("second"))
	if order != nil {
		t.Fatalf("processed in the goroutine of the caller: %q", order)
	}
	d.turn()
	if want := []string{"first Warning Odd seen", "second Warning Odd seen"}; !slices.Equal(order, want) {
		t.Errorf("processed are %q, want %q", order, want)
	}
	if len(d.publisher.ready) != 1 {
		t.Error("nobody looks whether something else is to be shown")
	}
}
