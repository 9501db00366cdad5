package framework

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"kube-queue.dev/kube-queue/pkg/lenient"
)

// Object is a job of some kind.
type Object = lenient.Object

// Adapter describes one kind of job to the framework. Its methods are pure, and never change the job or panic, even if
// the object is incomplete.
type Adapter interface {
	// Kind returns the names of the kind and how its jobs are marked.
	Kind() Kind
	// New returns an empty object to decode a job into.
	New() Object
	// State returns what the job's spec and status report about its lifecycle.
	State(Object) JobState
	// Pods returns the pods of the job. An error becomes the message of reason InvalidRequest, so the user must be
	// able to fix it.
	Pods(Object) (Pods, error)
	// Templates returns pointers to the job's own pod templates, so that they can be
	// stripped before the job is cached.
	Templates(Object) []*corev1.PodTemplateSpec
	// SuspendPatch returns the part of a merge patch of the job that suspends or
	// resumes it. It may also set annotations, below "metadata".
	SuspendPatch(job Object, suspend bool) map[string]any
}

// As returns a job as the type of Adapter.New. For an object of another type, which no adapter gets, it returns an
// empty job.
func As[T any, P interface {
	*T
	Object
}](object Object) P {
	if job, is := object.(P); is {
		return job
	}
	return new(T)
}

// RemainsKeeper is an Adapter whose operator can keep the object of Kind.Remains after its job ends. A user must then
// delete it.
type RemainsKeeper interface {
	Adapter
	// Keeps returns why the operator keeps the object of the ended job, and how to fix that; empty if it deletes the
	// object.
	Keeps(job Object) string
}

// QueuingPatcher is implemented by adapters of kinds whose own status can show
// that a job is queued.
type QueuingPatcher interface {
	// QueuingPatch returns a merge patch of the job's status that shows, or no longer
	// shows, that the job is queued.
	QueuingPatch(job Object, queuing bool, message string, now time.Time) map[string]any
}

// RelatedReader is implemented by adapters of kinds whose jobs do not contain their pod templates. A related object of
// kind Kind.Related contains them. The job controls it, and both have the same name.
type RelatedReader interface {
	// NewRelated returns an empty object to decode a related object into.
	NewRelated() Object
	// RelatedTemplates returns pointers to the object's own pod templates, so that they
	// can be stripped before it is cached.
	RelatedTemplates(related Object) []*corev1.PodTemplateSpec
	// StateWith and PodsWith are State and Pods for a job and its related object, which is nil if it does not exist
	// yet.
	StateWith(job, related Object) JobState
	PodsWith(job, related Object) (Pods, error)
}

// ScaledReader is implemented by adapters of kinds with Kind.Remains. Their jobs run in such an object, and an
// autoscaler can scale it.
type ScaledReader interface {
	// NewScaled returns an empty object to decode such an object into.
	NewScaled() Object
	// SlimScaled removes unused fields from an object before it is cached.
	SlimScaled(scaled Object)
	// PodsScaled returns the pods of a job. If its object is scaled to fewer pods, it returns that number of pods.
	PodsScaled(job, scaled Object) (Pods, error)
}

// Autoscaled is implemented by adapters of kinds whose autoscaler writes the number of pods into the job itself. Its
// Fence has one element of Groups, and the autoscaler changes the first of its Sizes.
type Autoscaled interface {
	// Grown returns the groups of the job that its autoscaler may have raised above the admitted number of pods.
	// Pod sets that are not in admitted are left out.
	Grown(job Object, admitted map[string]int32) []Growth
}

// Growing is an Adapter of jobs that can have more pods after their release.
type Growing interface {
	Adapter
	// Growing returns the pod sets of a job that can grow, and how many pods each has now. scaled is the object that its
	// autoscaler scales, if the kind has one and it exists; nil otherwise.
	Growing(job, scaled Object) map[string]int32
	// KeepsGrowth returns why pods that a job adds cannot be deleted for other jobs; empty if they can.
	KeepsGrowth() string
}

// Growth is a number of pods that an autoscaler has raised above the admitted number.
type Growth struct {
	PodSet string
	// Field is the JSON pointer (RFC 6901) of the number in the job. Admitted is its value for the admitted pods.
	Field         string
	Now, Admitted int32
}

// ElasticReader is implemented by adapters of kinds with Kind.Elastic if not every job can start with fewer pods, or
// if jobs declare how many they need.
type ElasticReader interface {
	// Least returns how many pods of the elastic pod set the job needs according to its own spec; 0 if the spec does
	// not say. why tells the owner why the job needs all of them; empty if it needs fewer.
	Least(Object) (least int32, why string)
}

// Kind is the static description of a kind.
type Kind struct {
	// Name in --enabled-extensions.
	Name string
	// OtherNames in --enabled-extensions enable the same kind.
	OtherNames []string
	// GroupVersionKind has the preferred version.
	schema.GroupVersionKind
	// OlderVersions are used, in this order, if the API server does not serve the
	// preferred one. Jobs of all versions are decoded into the same type.
	OlderVersions []string
	// Resource is the kind's name in API paths, such as "tfjobs".
	Resource string
	// SuspendPath is the path of the operator's own suspend field, such as spec.suspend.
	// The field managedBy, which names another controller, has the same parent.
	SuspendPath []string
	// MarkedBySuspend: the suspend field alone is an opt-in mark, unless JobState.NoMark
	// is set. The annotation is a mark for every kind.
	MarkedBySuspend bool
	// Native: the API server itself decodes the kind, so every object can be decoded
	// here too. For other kinds, one malformed object must not fail a list.
	Native bool
	// ManagedBy is the value of managedBy that makes the kind's own operator run a job; empty if the kind has no such
	// field.
	ManagedBy string
	// Parts are the kinds of jobs that the operator itself creates as parts of a job, and starts and stops with it.
	// Jobs that a user's steps create are not parts.
	Parts []schema.GroupKind
	// Remains is a resource of the kind's own group and version, such as "rayclusters"; empty if the job's own status
	// is sufficient. While a job controls such an object, it may have pods left, so it has neither stopped nor ended.
	// The adapter must be a ScaledReader.
	Remains string
	// RemainsKind is the kind of Remains, such as "RayCluster", for messages.
	RemainsKind string
	// PodLabel identifies the job of pods that have lost their controller, because the job
	// was deleted and its dependents were orphaned. Objects of Remains have it too.
	PodLabel PodLabel
	// Related is the kind of the objects that contain the pod templates of jobs, and the adapter must be a
	// RelatedReader. It is empty if jobs contain the templates.
	Related Related

	// Sets are the fields that a hold sets together with the suspend field. The hold
	// policy sets them at admission, Adapter.SuspendPatch on a running job.
	Sets []Setting
	// Holdable conditions are true for the jobs that the operator accepts while they are suspended: those with an empty
	// JobState.Unholdable. The hold policy does not change other jobs.
	Holdable []Condition
	// Maps are the paths of the maps that Holdable reads. The hold policy matches a job
	// only if each of them is absent or a map. The parents of SuspendPath are always
	// checked and need not be listed.
	Maps [][]string
	// Operators are the usernames of the operator in its own manifests, as examples for administrators.
	Operators []string
	// Fence describes what users cannot change in a released job of a managed namespace.
	Fence Fence
	// Elastic is the pod set that can start with fewer pods; nil if there is none.
	Elastic *Elastic
	// Places are where jobs contain the annotations of their pods. If there are none, NoPlaces tells the owner of a job
	// why its release cannot add annotations.
	Places   []Place
	NoPlaces string
	// Doc is for the documentation.
	Doc Doc
}

// Related is a kind of object that is read together with the jobs of a kind.
type Related struct {
	schema.GroupVersionKind
	// Resource is the kind's name in API paths, such as "jobsets".
	Resource string
}

// PodLabel is a label that an operator sets on the pods of its jobs.
type PodLabel struct {
	Key string `json:"key"`
	// IsUID: its value is the UID of the job. Otherwise it is the name.
	IsUID bool `json:"isUID"`
}

// Value returns the value of the label on the pods of a job.
func (l PodLabel) Value(name string, uid types.UID) string {
	if l.IsUID {
		return string(uid)
	}
	return name
}

// JobState is the state of a job as its adapter reads it.
type JobState struct {
	// Suspended is the operator's real suspend field.
	Suspended bool
	// NoMark: the suspend field has another purpose in this job and is not an opt-in mark.
	NoMark bool
	// Unholdable is the reason why the operator permanently rejects the job if it is
	// suspended. Such a job is not changed, and its unit has reason InvalidRequest.
	Unholdable string
	// ManagedBy is the job's managedBy.
	ManagedBy string
	// Started: the operator has started the job at least once.
	Started bool
	// Running: pods of the job are running.
	Running bool
	// Ready: all pods that the job requests now are or were ready, or have succeeded. It can become false again when
	// a pod is lost. Doc.Ready describes what counts.
	Ready bool
	// Stopped: the operator has reported that the suspended job has no pods left.
	Stopped bool
	// Suspending: the operator has not reported yet that the job is suspended. If the job is unsuspended before that,
	// the operator may never start it.
	Suspending bool
	// Lingers explains to the user why the job continues after it is suspended, and
	// until when; empty if suspending stops it.
	Lingers string
	// Unstoppable explains to the user why suspending the job may never stop it; empty if it always does.
	// The job is then never evicted for another one.
	Unstoppable string
	// End is set once the job has ended. If the job is Gated and Suspended, gated pods may still replace those that
	// have ended.
	End *End
	// Queuing is how the job's own status shows that it is queued.
	Queuing Queuing
	// Gated: the job consists of pods that wait at a gate. See GatedPods.
	Gated bool
	// Incomplete: parts of the job that determine its request do not exist yet.
	Incomplete bool
}

// End of a job.
type End struct {
	Succeeded       bool
	Reason, Message string
}

// Queuing is how a job's own status shows that it is queued.
type Queuing struct {
	// Ready: the operator has written that the job is suspended, so it will not overwrite our condition soon.
	Ready bool
	// On: the status contains a true condition that the job is queued.
	On bool
	// Shown: the condition is where users see it.
	Shown bool
}

// Pods are the pods of a job.
type Pods struct {
	Sets []PodSet
	// PriorityClassName of the job's own scheduling policy. If it is empty, the first
	// set that names a class counts: sets are in the kind's fixed order of roles.
	PriorityClassName string
	// PriorityClassField is the field of the job that names it, such as spec.podPriorityClassName.
	PriorityClassField string
	// Unsized explains to the user that the requests of the job's pods are unknown, and how to declare them. The job
	// is charged nothing, and the user gets a warning.
	Unsized string
}

// PodSet is a set of equal pods.
type PodSet struct {
	Name  string
	Count int32
	// Ended is how many pods are missing from Count because they have ended. A restart of the job does not create
	// them again, but they stay admitted.
	Ended int32
	// Template of the pods. It can be nil if Declared is set.
	Template *corev1.PodTemplateSpec
	// Declared, if not nil, are the requests of each pod that the job's owner has declared. They replace those of the
	// template, without defaults.
	Declared corev1.ResourceList
	// CrossesNamespaces: the operator adds an affinity to pods of all namespaces that is not in the template.
	CrossesNamespaces bool
	// Created: Template comes from an existing pod, so it already has what the API server and webhooks add.
	Created bool
}

// Versions returns the versions of the kind, the preferred one first.
func (k Kind) Versions() []string { return append([]string{k.Version}, k.OlderVersions...) }
