// Package seats is the smallest possible quota backend, for tests: a namespace has as many seats as its label says,
// and each unit takes one, whatever it requests.
// docs/development/adding-a-backend.md explains it.
package seats

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	"kube-queue.dev/kube-queue/pkg/controller/backend"
	"kube-queue.dev/kube-queue/pkg/follow"
	"kube-queue.dev/kube-queue/pkg/quota"
	"kube-queue.dev/kube-queue/pkg/resources"
)

// Label is the label of a namespace with its number of seats.
const Label = "example.com/seats"

// hall is the backend: the namespaces that have seats.
type hall struct {
	names  *resources.Names
	groups []quota.Group
	byName map[string]*row
}

// row is a namespace's row of seats.
type row struct {
	namespace   string
	node        []quota.NodeID
	jobs        resources.ID
	seats, used int64
}

func newHall(names *resources.Names, seats map[string]int64) *hall {
	h := &hall{names: names, byName: map[string]*row{}}
	for i, namespace := range slices.Sorted(maps.Keys(seats)) {
		r := &row{namespace: namespace, node: []quota.NodeID{quota.NodeID(i)}, jobs: names.ID(quota.JobsResource), seats: seats[namespace]}
		h.groups, h.byName[namespace] = append(h.groups, r), r
	}
	return h
}

func (h *hall) Place(namespace, _ string) (quota.Group, *quota.Refusal) {
	if r := h.byName[namespace]; r != nil {
		return r, nil
	}
	return nil, &quota.Refusal{Reason: wellknown.ReasonNoQuota,
		Sentence: fmt.Sprintf("namespace %s has no seats; give it the label %s", namespace, Label)}
}

func (h *hall) Groups() []quota.Group { return h.groups }

func (h *hall) Nearest(string) quota.Group { return nil }

func (h *hall) Unqueued(string) quota.Group { return nil }

func (h *hall) Room(space quota.Space) int64 {
	r := h.groups[space.Node].(*row)
	if space.Resource != r.jobs {
		return math.MaxInt64
	}
	return r.seats - r.used
}

func (h *hall) Share(b quota.Branch, _ quota.Demand) quota.Share {
	r := h.groups[b.Node].(*row)
	return quota.Share{Kind: quota.OfMax, Used: r.used, Due: max(r.seats, 1)}
}

func (h *hall) Usage() []quota.NodeUsage {
	var all []quota.NodeUsage
	for _, g := range h.groups {
		r := g.(*row)
		all = append(all, quota.NodeUsage{Path: r.namespace, Jobs: r.used})
	}
	return all
}

func (r *row) Path() string { return r.namespace }

func (r *row) Queue() string { return quota.QueueName(r.namespace) }

func (r *row) Nodes() []quota.NodeID { return r.node }

func (r *row) Fits(quota.Demand) *quota.Refusal {
	refusal := &quota.Refusal{Reason: wellknown.ReasonMaxJobs, Node: r.namespace, Resource: quota.JobsResource,
		Asked: 1, Used: r.used, Limit: r.seats, Lack: quota.Lack{Space: r.space(), Amount: 1}}
	switch {
	case r.seats == 0:
		refusal.Reason = wellknown.ReasonExceedsMaxQuota
		return refusal
	case r.used >= r.seats:
		return refusal
	}
	return nil
}

func (r *row) Owed(quota.Demand, quota.Branch) bool { return false }

func (r *row) Charge(*quota.Charge) { r.used++ }

func (r *row) Uncharge(*quota.Charge) { r.used-- }

func (r *row) Spaces(_ *quota.Charge, visit func(quota.Space)) { visit(r.space()) }

func (r *row) space() quota.Space { return quota.Space{Node: r.node[0], Resource: r.jobs} }

// Source reads the seats from the namespaces' labels.
type Source struct {
	names  *resources.Names
	listed bool
	seats  map[string]int64
}

var _ backend.Source = (*Source)(nil)

// Start watches the namespaces.
func (s *Source) Start(ctx context.Context, host backend.Host) ([]cache.InformerSynced, error) {
	client, err := kubernetes.NewForConfig(host.Config)
	if err != nil {
		return nil, fmt.Errorf("watching namespaces: %w", err)
	}
	s.names, s.seats = host.Names, map[string]int64{}
	factory := informers.NewSharedInformerFactory(client, 0)
	synced, err := follow.Objects(factory.Core().V1().Namespaces().Informer(),
		func(namespace *corev1.Namespace) {
			host.Take(func() backend.Change { return s.set(namespace.Name, namespace.Labels[Label]) })
		},
		func(last *corev1.Namespace) {
			host.Take(func() backend.Change { return s.set(last.Name, "") })
		})
	if err != nil {
		return nil, fmt.Errorf("watching namespaces: %w", err)
	}
	factory.StartWithContext(ctx)
	return []cache.InformerSynced{synced}, nil
}

// set applies the label of a namespace. A label that is not a number gives no seats.
func (s *Source) set(namespace, label string) backend.Change {
	before, had := s.seats[namespace]
	seats, err := strconv.ParseInt(label, 10, 32)
	has := err == nil && seats >= 0
	if has {
		s.seats[namespace] = seats
	} else {
		delete(s.seats, namespace)
	}
	if !s.listed || had == has && before == s.seats[namespace] {
		return backend.Change{}
	}
	return s.decide()
}

// Listed makes the core decide by the existing seats.
func (s *Source) Listed() backend.Change {
	s.listed = true
	return s.decide()
}

func (s *Source) decide() backend.Change {
	return backend.Change{Quota: &backend.Quota{Backend: newHall(s.names, s.seats)}}
}

// Pods returns no rules, because pods take no seats.
func (s *Source) Pods() backend.PodRules { return backend.PodRules{} }

// Keep keeps nothing: the backend never looks at what a unit consists of.
func (s *Source) Keep(_, _ *v1alpha1.QueueUnitSpec) {}

// Demand is one seat, whatever the unit requests.
func (s *Source) Demand(*v1alpha1.QueueUnit) (quota.Demand, error) {
	return quota.Demand{Requests: resources.Vector(nil).With(s.names.ID(quota.JobsResource), 1)}, nil
}
