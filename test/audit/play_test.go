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

// kinds are the objects of stories: their resources and kinds.
var kinds = map[string]struct{ resource, kind string }{
	"tfjob": {"kubeflow.org/v1/tfjobs", "TFJob"}, "job": {"batch/v1/jobs", "Job"}, "rayjob": {"ray.io/v1/rayjobs", "RayJob"}, "raycluster": {"ray.io/v1/rayclusters", "RayCluster"},
	"jobset": {"jobset.x-k8s.io/v1alpha2/jobsets", "JobSet"}, "workflow": {"argoproj.io/v1alpha1/workflows", "Workflow"},
	"spark": {"sparkoperator.k8s.io/v1beta2/sparkapplications", "SparkApplication"}, "mpijob": {"kubeflow.org/v2beta1/mpijobs", "MPIJob"},
	"pod": {pods, "Pod"}, "unit": {"scheduling.x-k8s.io/v1alpha1/queueunits", "QueueUnit"}, "queue": {"scheduling.x-k8s.io/v1alpha1/queues", "Queue"},
	"tree": {"scheduling.sigs.k8s.io/v1beta1/elasticquotatrees", "ElasticQuotaTree"}, "quota": {"/v1/resourcequotas", "ResourceQuota"},
	"lease": {"coordination.k8s.io/v1/leases", "Lease"}, "event": {"/v1/events", "Event"}, "configmap": {"/v1/configmaps", "ConfigMap"},
}

// held are the jobs that the first phrase of a story creates: a TFJob, a batch Job or a RayJob.
var held = map[string]struct{ kind, object string }{
	"":  {"tfjob", `{metadata: {annotations: {scheduling.x-k8s.io/suspend: "true"}}, spec: {runPolicy: {suspend: true}, tfReplicaSpecs: {Worker: {replicas: 1}}}}`},
	"b": {"job", `{spec: {suspend: true, parallelism: 1, completions: 1}}`},
	"r": {"rayjob", `{spec: {suspend: true}}`},
}

// treeOf is a quota tree whose root has these fields.
func treeOf(root string) string {
	return fmt.Sprintf(`{metadata: {namespace: kube-system}, spec: {root: {name: root, %s}}}`, root)
}

// podOf is a pod with this metadata, and a container that requests this many cores.
func podOf(metadata, cpu string) string {
	return fmt.Sprintf(`{metadata: {%s}, spec: {containers: [{name: main, resources: {requests: {cpu: "%s"}}}]}, status: {phase: Pending}}`, metadata, cpu)
}

// ref is a reference to the job.
func (p *play) ref() string {
	return fmt.Sprintf("{apiVersion: %s, kind: %s, namespace: default, name: %s, uid: %s}",
		p.job.text("apiVersion"), p.job.text("kind"), p.job.text("metadata.name"), p.job.text("metadata.uid"))
}

func (p *play) isBatch() bool { return p.job.resource == kinds["job"].resource }

func (p *play) enqueue() {
	p.unit = p.s.create(extensions, "unit", p.job.text("metadata.name")+"-unit",
		fmt.Sprintf(`{spec: {consumerRef: %s, podSets: [{name: worker, count: 1, requests: {cpu: "%[2]d"}}], resource: {cpu: "%[2]d"}}}`, p.ref(), p.cpu))
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

// start creates a pod of the job, as the operator does.
func (p *play) start(cpu int) {
	pod := p.s.create(operator, "pod", fmt.Sprintf("%s-%d", p.name, len(p.made)), podOf("ownerReferences: [$"+p.name+"]", fmt.Sprint(cpu)))
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

// orphan deletes the job and its unit, and removes the owners of its pods, as the garbage collector does.
func (p *play) orphan() {
	p.job.set("metadata.finalizers", []any{"orphan"})
	p.job.terminate(admin, 0)
	for _, pod := range p.pods {
		pod.loseOwners()
	}
	p.unit.remove(extensions)
	p.job.remove(collector)
}

// limit creates a ResourceQuota with limits and further fields.
func (p *play) limit(args []string) {
	p.job = p.s.create(admin, "quota", p.name, fmt.Sprintf("{spec: {hard: %s, %s}}", args[0], more(args[1:])))
}

// decide writes the status of a ResourceQuota, as the quota controller does.
func (p *play) decide() {
	hard, _, _ := unstructured.NestedMap(p.job.obj, "spec", "hard")
	used := map[string]any{}
	for key := range hard {
		used[key] = "0"
	}
	p.job.patchStatus(quotaSteward, "status.hard", hard, "status.used", used)
}

// more returns the fields of a given object, for use inside another.
func more(args []string) string {
	text := strings.Join(args, " ")
	if text == "" {
		return ""
	}
	return text[1:len(text)-1] + ", "
}

// seen is how long the controller may take to count a change.
const seen = 3 * time.Second
