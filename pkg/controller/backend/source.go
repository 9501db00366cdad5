// Package backend says what stands between a quota backend and the cluster: a Source
// watches the objects that the quota is written in, and reports the core what
// comes of it.
//
// A backend has two halves: the quota.Backend, which decides and knows no client, and
// the Source, which feeds it. A small backend is one package with both. The Sources of
// the Backends in pkg/quota are the packages below this one. docs/development/adding-a-backend.md
// reports how to write a backend.
package backend

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	"kube-queue.dev/kube-queue/pkg/quota"
	"kube-queue.dev/kube-queue/pkg/resources"
)

// Source feeds a quota backend. Start is called first and once; everything else, what
// it gave to Host.Take included, is called by one goroutine, one thing after another.
type Source interface {
	// Start begins to watch, until the context ends, and returns without waiting. Each
	// of synced reports whether all that there was has been given to Host.Take.
	Start(ctx context.Context, host Host) (synced []cache.InformerSynced, err error)
	// Listed is called once, when all that there was has been taken in. Nothing is
	// decided before.
	Listed() Change
	// Keep copies to kept what Demand reads of the spec of a unit, beyond resource,
	// preemptible and the like, which are always kept. Called by any goroutine.
	Keep(unit *v1alpha1.QueueUnitSpec, kept *v1alpha1.QueueUnitSpec)
	// Demand is what the unit takes while it holds quota, JobsResource included. The
	// error says what its user must fix; the demand is what is known all the same. Of
	// a unit that has ended nothing is kept, of one that cannot be read what could be.
	Demand(unit *v1alpha1.QueueUnit) (quota.Demand, error)
}

// StatusWriter is a Source that shows how much is used in objects of its own.
type StatusWriter interface {
	Source
	// PrepareStatus prepares what is to be shown, by what units in line ask for at each
	// node; show writes it, where it differs, and is called by another goroutine. Nil
	// when there is nothing to show.
	PrepareStatus(pending map[quota.NodeID]resources.Vector) (show func(context.Context) error)
}

// Validator is a Source whose objects may be refused as a whole.
type Validator interface {
	Source
	// Invalid is what is wrong with what the quota is written in, so that it is not in
	// force; empty when nothing is.
	Invalid() string
}

// Host is what the controller offers a Source.
type Host struct {
	// Config to reach the API server with.
	Config *rest.Config
	Clock  clock.Clock
	// Names that demands and limits are made with.
	Names *resources.Names
	// Take has what was seen taken in by the goroutine that decides, in the order of
	// the calls. It never blocks.
	Take func(func() Change)
}

// Change is what comes of something that was seen.
type Change struct {
	// Quota that is in force from now on; nil while that stays as it is.
	Quota *Quota
	// Seen is for the Backend in force, which is a quota.Observer, to take in; nil when
	// there is nothing.
	Seen any
	// Notices to write as events about objects, and to the log.
	Notices []Notice
}

// Quota is what is decided by.
type Quota struct {
	// Backend that decides; nil when there is none.
	Backend quota.Backend
	// Missing says why there is none.
	Missing *quota.Refusal
}

// Notice is an event about an object of the quota.
type Notice struct {
	About *unstructured.Unstructured
	// Type as in a core/v1 Event: Normal or Warning.
	Type    string
	Reason  wellknown.EventReason
	Message string
}
