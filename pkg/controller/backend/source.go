// Package backend defines the interface between a quota backend and the cluster: a Source watches the
// objects that define the quota and reports the resulting changes to the core.
//
// A backend has two parts: the quota.Backend, which decides and has no client, and the Source,
// which feeds it. A small backend is one package with both. The Sources of the Backends in
// pkg/quota are the packages below this one. docs/development/adding-a-backend.md describes how to
// write a backend.
package backend

import (
	"context"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	"kube-queue.dev/kube-queue/pkg/controller/devicewatch"
	"kube-queue.dev/kube-queue/pkg/pods"
	"kube-queue.dev/kube-queue/pkg/quota"
	"kube-queue.dev/kube-queue/pkg/resources"
)

// Source feeds a quota backend. Start is called first and once. All other methods except Keep, and the
// functions that the Source passes to Host.Take, are called sequentially by one goroutine.
type Source interface {
	// Start starts watches that run until the context ends, and returns without waiting. Each of
	// synced reports whether all existing objects were passed to Host.Take.
	Start(ctx context.Context, host Host) (synced []cache.InformerSynced, err error)
	// Listed is called once, after all existing objects are processed. No decision is made until then.
	Listed() Change
	// Pods returns how pods are counted. It is called before Start.
	Pods() PodRules
	// Keep copies to kept the fields of a unit's spec that Demand reads, except those that are always kept, such as
	// resource and preemptible. Any goroutine can call it.
	Keep(unit *v1alpha1.QueueUnitSpec, kept *v1alpha1.QueueUnitSpec)
	// Demand returns what the unit is charged while it holds quota, including JobsResource. The error tells the user
	// what to fix; the demand then has what is known. The spec of an ended unit is empty, and the spec of an unreadable
	// unit is incomplete.
	Demand(unit *v1alpha1.QueueUnit) (quota.Demand, error)
}

// PodUse is the usage of one pod, in the form of the Source. It is stored for each pod of the cluster, so it should be
// small.
type PodUse any

// PodRules are how a Source counts pods.
type PodRules struct {
	// Weigh returns what the pod uses, or what it uses after it has ended. Any goroutine can call it. If it is nil,
	// pods use no quota and are not watched.
	Weigh func(pod *corev1.Pod, ended bool) PodUse
	// Requests returns the amounts that the pod is charged, and those of the claims that it can share with other
	// pods. The goroutine that decides calls it, again whenever Devices reports a change of the pod's devices.
	Requests func(PodUse) (resources.Vector, []pods.Shared)
	// Devices watches the devices of pods.
	Devices *devicewatch.Watch
	// CountEnded is whether pods that have ended use quota. If not, they are not watched.
	CountEnded bool
	// Strays are the pods that count for their namespace although they belong to no unit.
	Strays Strays
}

// Strays is a set of pods that belong to no unit.
type Strays int

const (
	// Orphans are the pods of jobs that were deleted without their pods.
	Orphans Strays = iota
	// UnqueuedPods are all pods except those known to serve a node: static pods in kube-system, and pods of
	// DaemonSets in namespaces that are not managed.
	UnqueuedPods
	// AllPods are all pods.
	AllPods
)

// StatusWriter is a Source that shows the usage in the status of its objects.
type StatusWriter interface {
	Source
	// PrepareStatus prepares the status. pending are the requests of the queued units by node. show,
	// which is called by another goroutine, writes the status if it has changed. show is nil if there
	// is nothing to write.
	PrepareStatus(pending map[quota.NodeID]resources.Vector) (show func(context.Context) error)
}

// ExcessReporter is a Source that shows which of its limits pods exceed.
type ExcessReporter interface {
	Source
	// Report records that exactly these limits are exceeded now.
	Report([]quota.Excess) Change
}

// Rebuilder is a Source that can rebuild the quota in force.
type Rebuilder interface {
	Source
	// Rebuild returns the quota in force with nothing charged to it.
	Rebuild() Change
}

// Copier is a Source that can read units for a copy of its Backend.
type Copier interface {
	Source
	// DemandIn returns a Demand for the copy. It uses the names and the copy, and can add to both, so only the
	// goroutine that uses them calls it.
	DemandIn(names *resources.Names, copied quota.Explainer) func(*v1alpha1.QueueUnit) (quota.Demand, error)
}

// Validator is a Source whose objects can be invalid as a whole.
type Validator interface {
	Source
	// Invalid returns why the current objects are not in force; empty if they are.
	Invalid() string
}

// Host is what the controller offers a Source.
type Host struct {
	// Config is the configuration for clients of the API server.
	Config *rest.Config
	Clock  clock.Clock
	// Namespace is the namespace of the objects of the program.
	Namespace string
	// Names builds demands and limits. If the Backend in force is a quota.Forgetter, an ID can be assigned to another
	// name as soon as the Backend, the units and the pods no longer refer to it. So the Source must not store IDs.
	Names *resources.Names
	// Take makes the goroutine that decides call the function and apply the change, in the order of
	// the calls of Take. It never blocks.
	Take func(func() Change)
	// Moving reports whether settings of Queues must still move to the new names of their groups. Until they have, a
	// process that starts needs the previous quota in Quota.Last. Moving waits until a Change is applied.
	Moving func() bool
}

// Change is the result of an observation.
type Change struct {
	// Quota is the new quota in force; nil if it has not changed.
	Quota *Quota
	// Seen is an observation for the Backend in force, which must then be a quota.Observer; nil if there is none.
	Seen any
	// Notices are written as events on objects and to the log.
	Notices []Notice
}

// Quota is the quota in force.
type Quota struct {
	// Backend is the backend; nil if there is none.
	Backend quota.Backend
	// Missing explains why there is none.
	Missing *quota.Refusal
	// Last is the backend that an earlier process used. It is set at most at the start, and nil if unknown.
	Last quota.Backend
}

// Notice is an event on an object of the quota.
type Notice struct {
	About *unstructured.Unstructured
	// Type is the type of the core/v1 Event: Normal or Warning.
	Type    string
	Reason  wellknown.EventReason
	Message string
	// Key distinguishes the event from others with the same reason and version of the object; empty if there are none.
	Key string
	// IsError is whether the event is logged as an error.
	IsError bool
}

// EventKey returns what distinguishes the event from others with the same reason about the object. It begins with the
// version of the object: the generation or, for an object without one, the resourceVersion.
func (n *Notice) EventKey() string {
	version := n.About.GetResourceVersion()
	if generation := n.About.GetGeneration(); generation != 0 {
		version = strconv.FormatInt(generation, 10)
	}
	if n.Key == "" {
		return version
	}
	return version + "/" + n.Key
}
