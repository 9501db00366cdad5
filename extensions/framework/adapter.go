package framework

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"kube-queue.dev/kube-queue/pkg/lenient"
)

// Object is a job of some kind.
type Object = lenient.Object

// Adapter teaches the framework one kind of job. Its methods are pure, never
// change the job and never panic, however little the object holds.
type Adapter interface {
	// Kind says how the kind is called and how its jobs are marked.
	Kind() Kind
	// New returns an empty object to decode a job into.
	New() Object
	// State says what the job's spec and status report its life.
	State(Object) JobState
	// Pods says which pods the job is made of. An error is the user's to fix: it
	// becomes the message of reason InvalidRequest.
	Pods(Object) (Pods, error)
	// Templates are the job's pod templates themselves, to be stripped before the
	// job is cached.
	Templates(Object) []*corev1.PodTemplateSpec
	// SuspendPatch is the part of a merge patch of the job that suspends it, or
	// has it run. It may set annotations too, below "metadata".
	SuspendPatch(job Object, suspend bool) map[string]any
}

// QueuingPatcher is implemented by adapters of kinds whose own status can show
// that a job is queued.
type QueuingPatcher interface {
	// QueuingPatch is a merge patch of the job's status that shows, or no longer
	// shows, that the job is queued.
	QueuingPatch(job Object, queuing bool, message string, now time.Time) map[string]any
}

// RelatedReader is implemented by adapters of kinds whose jobs do not say themselves
// what their pods are. An object does that which the job controls and which has the
// job's name: it is of kind Kind.Related.
type RelatedReader interface {
	// NewRelated returns an empty object to decode a related object into.
	NewRelated() Object
	// RelatedTemplates are its pod templates themselves, to be stripped before it is
	// cached.
	RelatedTemplates(related Object) []*corev1.PodTemplateSpec
	// StateWith is State, and PodsWith is Pods, of a job with its related object, which is
	// nil while there is none.
	StateWith(job, related Object) JobState
	PodsWith(job, related Object) (Pods, error)
}

// Kind is what the framework has to know of a kind in advance.
type Kind struct {
	// Name in --enabled-extensions.
	Name string
	// OtherNames in --enabled-extensions enable the same.
	OtherNames []string
	// GroupVersionKind is that of the best version.
	schema.GroupVersionKind
	// OlderVersions are made do with, in this order, where the API server does not
	// serve the best one. Jobs of all versions are decoded into the same type.
	OlderVersions []string
	// Resource is the kind's name in paths, as "tfjobs".
	Resource string
	// SuspendPath is the path of the operator's own suspend field, such as spec.suspend.
	// The field that names another controller, managedBy, stands beside it.
	SuspendPath []string
	// MarkedBySuspend: the suspend field alone asks to be queued, where
	// Sight.NoMark does not say otherwise. Every kind is asked for by the
	// annotation.
	MarkedBySuspend bool
	// Native: the API server itself decodes the kind, so every object of it can
	// be decoded here too. Of other kinds, one bad object must not fail a list.
	Native bool
	// ManagedBy is the value of a job's managedBy that says that the kind's own
	// operator runs it; empty where the kind has none.
	ManagedBy string
	// Owners are the kinds that may be the controller of a job that is queued.
	Owners []schema.GroupKind
	// Remains is a resource, of the kind's own group and version, as "rayclusters".
	// While the job controls an object of it, pods of the job remain: it has not
	// stopped, and has not ended. Empty: the job's own status reports that.
	Remains string
	// Related is the kind of the objects that say what the pods of jobs are; empty
	// where jobs do so themselves. Its adapter is a RelatedReader.
	Related Related

	// Sets are the fields that a hold sets along with the suspend field. What
	// Adapter.SuspendPatch does to a job that runs, the hold policy does at admission.
	Sets []Setting
	// Holdable conditions hold for each job that its operator accepts when it is
	// suspended: those whose Sight.Unholdable is empty. The hold policy leaves
	// others as they are.
	Holdable []Condition
	// Maps are the paths of fields that Holdable reads into. The hold policy takes a job
	// only where each of them is absent or a map; the parents of SuspendPath are
	// checked without being named.
	Maps [][]string
	// Doc is for people.
	Doc Doc
}

// Related is a kind of object that is read along with the jobs of a kind.
type Related struct {
	schema.GroupVersionKind
	// Resource is the kind's name in paths, such as jobsets.
	Resource string
}

// JobState is what a job looks like to its adapter.
type JobState struct {
	// Suspended is the operator's real suspend field.
	Suspended bool
	// NoMark: the suspend field serves some other purpose in this job and does not
	// ask to be queued.
	NoMark bool
	// Unholdable says why the operator would refuse the job, for good, if it were
	// suspended. Such a job is left as it is, and its unit says InvalidRequest.
	Unholdable string
	// ManagedBy is the job's managedBy.
	ManagedBy string
	// Started: the operator has begun to run the job at some time.
	Started bool
	// Running: pods of the job run now.
	Running bool
	// Stopped: the operator has said that the suspended job has no more pods.
	Stopped bool
	// Suspending: the operator has yet to say that the job is suspended, and might never
	// start it if it were unsuspended before.
	Suspending bool
	// Lingers says, to the user, why the job would go on though it were suspended
	// now, and until when; empty where suspending stops it.
	Lingers string
	// End is set once the job has ended.
	End *End
	// Queuing is what the job's own status shows about the queue.
	Queuing Queuing
}

// End of a job.
type End struct {
	Succeeded       bool
	Reason, Message string
}

// Queuing is what a job's own status shows about the queue.
type Queuing struct {
	// Ready: the operator has written that the job is suspended, so it will not
	// soon write over what we write.
	Ready bool
	// On: the status says that the job is queued.
	On bool
	// Shown: it says so where users look.
	Shown bool
}

// Pods are the pods that a job is made of.
type Pods struct {
	Sets []PodSet
	// PriorityClassName of the job's own scheduling policy. When empty, the first
	// set that names one counts: sets stand in the kind's fixed order of roles.
	PriorityClassName string
	// Unsized says, to the user, that the job does not report what its pods ask for,
	// and how to tell it. It is charged nothing, and the user warned.
	Unsized string
}

// PodSet is a group of equal pods.
type PodSet struct {
	Name  string
	Count int32
	// Template of the pods. It may be nil where Declared is given.
	Template *corev1.PodTemplateSpec
	// Declared, where not nil, is what each pod asks for in place of what its
	// template would: the job's owner has said so. Nothing is added to it.
	Declared corev1.ResourceList
}

// Versions of the kind, the best first.
func (k Kind) Versions() []string { return append([]string{k.Version}, k.OlderVersions...) }
