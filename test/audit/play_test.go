package audit

import (
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// play is one job and its unit, or another object.
type play struct {
	s          *script
	name, path string // path is the group of a unit without a job
	job, unit  *thing
	pods, made []*thing // pods that end with the job, and all
	cpu        int
}

// forms are objects that stories create, with %0 for the name and %1, %2 and %3 for arguments.
var forms = map[string]struct{ resource, text string }{
	// A TFJob, a batch Job and a RayJob, held.
	"": {"kubeflow.org/v1/tfjobs", `{apiVersion: kubeflow.org/v1, kind: TFJob, metadata: {name: %0, annotations: {scheduling.x-k8s.io/suspend: "true"}},
		spec: {runPolicy: {suspend: true}, tfReplicaSpecs: {Worker: {replicas: 1}}}}`},
	"b": {"batch/v1/jobs", `{apiVersion: batch/v1, kind: Job, metadata: {name: %0}, spec: {suspend: true, parallelism: 1, completions: 1}}`},
	"r": {"ray.io/v1/rayjobs", `{apiVersion: ray.io/v1, kind: RayJob, metadata: {name: %0}, spec: {suspend: true}}`},
	// A tree whose root has these fields.
	"tree": {"scheduling.sigs.k8s.io/v1beta1/elasticquotatrees", `{apiVersion: scheduling.sigs.k8s.io/v1beta1, kind: ElasticQuotaTree,
		metadata: {name: %0, namespace: kube-system}, spec: {root: {name: root, %1}}}`},
	// A ResourceQuota with these limits and fields.
	"quota": {"/v1/resourcequotas", `{apiVersion: v1, kind: ResourceQuota, metadata: {name: %0}, spec: {hard: %1, %2}}`},
	// The controller's lease, held by its first process.
	"lease": {"coordination.k8s.io/v1/leases", `{apiVersion: coordination.k8s.io/v1, kind: Lease, metadata: {name: kube-queue-controller, namespace: kube-queue},
		spec: {holderIdentity: one, leaseDurationSeconds: 15}}`},
	// A unit with this object and request.
	"unit": {"scheduling.x-k8s.io/v1alpha1/queueunits", `{apiVersion: scheduling.x-k8s.io/v1alpha1, kind: QueueUnit, metadata: {name: %0}, spec: {consumerRef: %1, %2}}`},
	// A pod with these metadata and fields, and a container that requests so many cores.
	"pod":   {pods, `{apiVersion: v1, kind: Pod, metadata: {name: %0, %1}, spec: {%2 containers: [{name: main, resources: {requests: {cpu: "%3"}}}]}, status: {phase: Pending, qosClass: Burstable}}`},
	"event": {"/v1/events", `{apiVersion: v1, kind: Event, metadata: {name: %0}, type: Normal, reason: Released, involvedObject: %1}`},
}

// fill returns the object of a form.
func fill(form string, args ...string) string {
	text := forms[form].text
	for i, arg := range args {
		text = strings.ReplaceAll(text, fmt.Sprintf("%%%d", i), arg)
	}
	return text
}

func (s *script) form(user, form string, args ...string) *thing {
	s.t.Helper()
	return s.create(user, forms[form].resource, fill(form, args...))
}

// ownedBy is the metadata of a pod of the job.
func (p *play) ownedBy() string { return "ownerReferences: [$" + p.name + "]" }

// ref is a reference to the job.
func (p *play) ref() string {
	return fmt.Sprintf("{apiVersion: %s, kind: %s, namespace: default, name: %s, uid: %s}",
		p.job.text("apiVersion"), p.job.text("kind"), p.job.text("metadata.name"), p.job.text("metadata.uid"))
}

func (p *play) isBatch() bool { return p.job.resource == forms["b"].resource }

func (p *play) enqueue() {
	p.unit = p.s.form(extensions, "unit", p.job.text("metadata.name")+"-unit", p.ref(),
		fmt.Sprintf(`podSets: [{name: worker, count: 1, requests: {cpu: "%[1]d"}}], resource: {cpu: "%[1]d"}`, p.cpu))
}

func (p *play) dequeue() {
	attempts, _, _ := unstructured.NestedFloat64(p.unit.obj, "status", "attempts")
	p.unit.patchStatus(controller, "status.phase", "Dequeued", "status.reason", nil, "status.quota", p.s.group, "status.attempts", attempts+1)
}

func (p *play) release() { p.suspend(extensions, false) }

func (p *play) suspend(user string, on bool) {
	if annotations, _, _ := unstructured.NestedStringMap(p.job.obj, "metadata", "annotations"); annotations[suspendKey] != "" {
		if err := unstructured.SetNestedField(p.job.obj, fmt.Sprint(on), "metadata", "annotations", suspendKey); err != nil {
			p.s.t.Fatal(err)
		}
	}
	path := "spec.runPolicy.suspend"
	if p.isBatch() {
		path = "spec.suspend"
	}
	p.job.patch(user, path, on)
}

// start creates a pod of the job as the operator.
func (p *play) start(cpu int) {
	pod := p.s.form(operator, "pod", fmt.Sprintf("%s-%d", p.name, len(p.made)), p.ownedBy(), "", fmt.Sprint(cpu))
	p.pods, p.made = append(p.pods, pod), append(p.made, pod)
}

func (p *play) runs() {
	if p.isBatch() {
		p.job.patchStatus("system:kube-controller-manager", "status.active", 1)
		return
	}
	p.job.conditions(operator, "Running=True")
}

// admit writes all steps from a held job to a running one.
func (p *play) admit() {
	if p.path != "" {
		p.unit.patchStatus(controller, "status.phase", "Dequeued", "status.quota", p.path)
		return
	}
	if p.unit == nil {
		p.enqueue()
	}
	p.dequeue()
	p.release()
	p.start(p.cpu)
	p.runs()
}

func (p *play) finish() {
	for _, pod := range p.pods {
		pod.patchStatus(kwok, "status.phase", "Succeeded", "spec.nodeName", "node-0")
	}
	if p.isBatch() {
		p.job.conditions(operator, "Complete=True")
		return
	}
	p.job.conditions(operator, "Running=False", "Succeeded=True")
}

func (p *play) endUnit() { p.unit.patchStatus(extensions, "status.phase", "Succeeded") }

// end writes all steps from a running job to the end of its unit.
func (p *play) end() {
	if p.path != "" {
		p.unit.patchStatus(admin, "status.phase", "Succeeded")
		return
	}
	p.finish()
	p.endUnit()
}

// evict evicts a running job and requeues its unit.
func (p *play) evict(reason string) {
	p.unit.conditions(controller, "Evicted=True/"+reason)
	p.suspend(extensions, true)
	for _, pod := range p.pods {
		pod.terminate(operator, 0)
	}
	p.pods = nil
	p.unit.conditions(extensions, "Evicted=True/Stopped")
	p.unit.set("status.phase", "Backoff")
	p.unit.set("status.reason", "Backoff")
	p.unit.conditions(controller, "Evicted=False/Requeued")
}

// orphan deletes the job, its unit, and as the garbage collector the owners of its pods.
func (p *play) orphan() {
	p.job.set("metadata.finalizers", []any{"orphan"})
	p.job.terminate(admin, 0)
	for _, pod := range p.pods {
		pod.loseOwners()
	}
	p.unit.remove(extensions)
	p.job.remove(collector)
}

// refused adds the refusal of a pod of the job.
func (p *play) refused(message string) {
	text := "pods \"x\" is forbidden: " + message
	e := p.s.entry(operator, "create", pods, "", "default", "", 403, map[string]any{"kind": "Status", "status": "Failure", "message": text})
	e["responseStatus"] = map[string]any{"code": 403, "message": text}
	p.s.asking("{kind: Pod, metadata: {generateName: x-, " + p.ownedBy() + "}}")
}

// decide writes the status of a ResourceQuota as the quota controller.
func (p *play) decide() {
	hard, _, _ := unstructured.NestedMap(p.job.obj, "spec", "hard")
	used := map[string]any{}
	for key := range hard {
		used[key] = "0"
	}
	p.job.patchStatus(quotaSteward, "status.hard", hard, "status.used", used)
}

// more returns the fields of an object that is given, to be part of another.
func more(args []string) string {
	text := strings.Join(args, " ")
	if text == "" {
		return ""
	}
	return text[1:len(text)-1] + ", "
}

// seen is how long the controller may not count what has changed.
const seen = 3 * time.Second
