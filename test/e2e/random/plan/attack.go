package plan

import "slices"

// Attack is an attempt of a user of a managed namespace to run more than is charged.
type Attack struct {
	// Identity is who attacks, and Verb how.
	Identity, Verb string
	// Object is the target, and Field the part of it. Without an object, Field is what is created.
	Object, Field string
}

func (a Attack) String() string { return a.Identity + ": " + a.Verb + " " + a.Object + ": " + a.Field }

// The identities. They have the rights of a role in the namespace, and rights on jobs of all kinds.
const (
	Editor        = "edit"
	Administrator = "admin"
	// Impostor is a ServiceAccount of the namespace with the name of that of job-extensions.
	Impostor = "impostor"
)

// The verbs. DryRun is a patch. Generate creates an object with a generated name.
const (
	Patch    = "patch"
	Update   = "update"
	Apply    = "apply with force"
	DryRun   = "dry run"
	Remove   = "delete"
	Create   = "create"
	Generate = "generate"
)

// The objects. A Part is between a job and its pods, such as the Job of a JobSet.
const (
	Pod  = "pod"
	Unit = "unit"
	Part = "part"
	Self = "job"
)

// The fields, and what is deleted. An apply changes a label, and other verbs remove it.
const (
	NoOwner     = "no owner"
	OtherOwner  = "another owner"
	Labels      = "labels"
	Finalizers  = "finalizers"
	Annotations = "annotations"
	Spec        = "spec"
	Status      = "status"
	Running     = "suspend: false"
	Size        = "size"
	Whole       = "all of it"
	WithoutPods = "all but its pods"
	Gate        = "no gate"
	Group       = "another group of another size"
)

// The created objects. All of them name the job.
const (
	APod         = "a pod that it controls"
	ADaemon      = "a pod of a DaemonSet"
	ALabelledPod = "a pod with the labels of its pods"
	AReplicaSet  = "a ReplicaSet that it controls"
	AJob         = "a Job that it controls"
	AMarkedJob   = "a marked Job that it controls"
	ACopy        = "a copy of a released Job"
	ABypass      = "a Job with a bypass"
	AnotherQueue = "a Job of another queue"
	ItsUnit      = "a unit"
	AnOldUnit    = "a unit of another object, from 1970"
	APlacedPod   = "a pod with a node"
	AGrownPod    = "a pod that it controls, as growth"
)

var (
	fields = map[string][]string{
		Pod:  {NoOwner, OtherOwner, Labels, Finalizers, Annotations, Gate, Group},
		Unit: {NoOwner, OtherOwner, Labels, Finalizers, Annotations, Spec, Status},
		Part: {NoOwner, OtherOwner, Labels, Finalizers, Running},
		Self: {OtherOwner, Labels, Finalizers, Annotations, Running, Size},
	}
	removed = map[string][]string{Pod: {Whole}, Unit: {Whole}, Part: {Whole, WithoutPods}, Self: {WithoutPods}}
	created = []string{APod, ADaemon, ALabelledPod, AReplicaSet, AJob, AMarkedJob, ACopy, ABypass, AnotherQueue, ItsUnit, AnOldUnit, APlacedPod, AGrownPod}
)

// attacks returns all attacks in a fixed order.
func attacks() (all []Attack) {
	for _, identity := range []string{Editor, Administrator, Impostor} {
		for _, object := range []string{Pod, Unit, Part, Self} {
			for _, field := range fields[object] {
				for _, verb := range []string{Patch, Update, Apply, DryRun} {
					all = append(all, Attack{identity, verb, object, field})
				}
			}
			for _, field := range removed[object] {
				all = append(all, Attack{identity, Remove, object, field})
			}
		}
		for _, what := range created {
			all = append(all, Attack{identity, Create, "", what}, Attack{identity, Generate, "", what})
		}
	}
	return all
}

// attack attacks a job. Each attack is drawn equally often, as far as jobs have parts and gates.
func (d *drawing) attack(j *job) {
	possible := func(a Attack) bool {
		return (a.Object != Part || j.kind.Parts) && (a.Field != Gate && a.Field != Group || j.kind.Gated)
	}
	if !slices.ContainsFunc(d.tries, possible) {
		more := attacks()
		d.chance.Shuffle(len(more), func(a, b int) { more[a], more[b] = more[b], more[a] })
		d.tries = append(d.tries, more...)
	}
	at := slices.IndexFunc(d.tries, possible)
	d.add(Step{Op: Try, Job: j.number, Attack: d.tries[at]})
	d.tries = slices.Delete(d.tries, at, at+1)
	d.attacks--
}

// targets returns the jobs that can be attacked. The first namespace has no attackers.
func (d *drawing) targets() (found []*job) {
	for _, j := range d.living {
		if d.attacks > 0 && d.plan.Job(j.number).Place > 0 {
			found = append(found, j)
		}
	}
	return found
}
