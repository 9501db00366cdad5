package audit

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/yaml"
)

// script writes an audit log like an API server, line by line.
type script struct {
	t        testing.TB
	entries  []map[string]any
	revision int64
	now      time.Time
	names    int
	group    string // the group that admits the jobs
	plays    map[string]*play
	marked   time.Time
}

const (
	admin        = "admin"
	kwok         = "kwok"
	operator     = "training-operator"
	collector    = "system:serviceaccount:kube-system:generic-garbage-collector"
	controller   = DefaultController
	extensions   = DefaultExtensions
	quotaSteward = "system:serviceaccount:kube-system:resourcequota-controller"

	suspendKey = "scheduling.x-k8s.io/suspend"
)

func newScript(t testing.TB) *script {
	return &script{t: t, group: "root/team", revision: 100, plays: map[string]*play{}, now: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)}
}

func (s *script) wait(d time.Duration) { s.now = s.now.Add(d) }

func (s *script) log() *Log {
	s.t.Helper()
	log, err := Read(bytes.NewReader(s.bytes()))
	if err != nil {
		s.t.Fatal(err)
	}
	return log
}

func (s *script) bytes() []byte {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	for _, e := range s.entries {
		if err := encoder.Encode(e); err != nil {
			s.t.Fatal(err)
		}
	}
	return out.Bytes()
}

// thing is an object in a script.
type thing struct {
	s        *script
	resource string // group/version/resource
	obj      map[string]any
}

func (s *script) entry(user, verb, resource, subresource string, namespace, name string, code int, response map[string]any) map[string]any {
	parts := strings.Split(resource, "/")
	received := s.now
	s.wait(2 * time.Millisecond)
	stamp := func(t time.Time) string { return t.Format("2006-01-02T15:04:05.000000Z") }
	e := map[string]any{
		"kind": "Event", "apiVersion": "audit.k8s.io/v1", "level": "RequestResponse", "auditID": fmt.Sprint(len(s.entries)),
		"stage": "ResponseComplete", "requestURI": "/apis/" + resource, "verb": verb,
		"user":           map[string]any{"username": user},
		"objectRef":      map[string]any{"apiGroup": parts[0], "apiVersion": parts[1], "resource": parts[2], "namespace": namespace, "name": name, "subresource": subresource},
		"responseStatus": map[string]any{"code": code}, "requestReceivedTimestamp": stamp(received), "stageTimestamp": stamp(s.now),
	}
	if response != nil {
		e["responseObject"] = runtime.DeepCopyJSON(response)
	}
	s.entries = append(s.entries, e)
	s.wait(3 * time.Millisecond)
	return e
}

// create creates an object in YAML as a user.
func (s *script) create(user, resource, text string) *thing {
	s.t.Helper()
	var obj map[string]any
	if err := yaml.Unmarshal([]byte(text), &obj); err != nil {
		s.t.Fatal(err)
	}
	raw, _ := json.Marshal(obj) // numbers as in JSON
	obj = map[string]any{}
	if err := json.Unmarshal(raw, &obj); err != nil {
		s.t.Fatal(err)
	}
	th := &thing{s, resource, obj}
	s.names++
	th.set("metadata.uid", fmt.Sprintf("uid-%d", s.names))
	th.set("metadata.creationTimestamp", s.now.Format(time.RFC3339))
	if th.text("metadata.namespace") == "" {
		th.set("metadata.namespace", "default")
	}
	th.write(user, "create", "", 201)
	return th
}

func (th *thing) set(path string, value any) {
	if v, ok := value.(int); ok {
		value = float64(v)
	}
	if value == nil {
		unstructured.RemoveNestedField(th.obj, strings.Split(path, ".")...)
		return
	}
	if err := unstructured.SetNestedField(th.obj, value, strings.Split(path, ".")...); err != nil {
		th.s.t.Fatal(err)
	}
}

func (th *thing) text(path string) string {
	v, _, _ := unstructured.NestedString(th.obj, strings.Split(path, ".")...)
	return v
}

func (th *thing) write(user, verb, subresource string, code int) map[string]any {
	th.s.revision++
	th.set("metadata.resourceVersion", fmt.Sprint(th.s.revision))
	name := th.text("metadata.name")
	return th.s.entry(user, verb, th.resource, subresource, th.text("metadata.namespace"), name, code, th.obj)
}

// patch sets fields, given as alternating paths and values.
func (th *thing) patch(user string, fields ...any) map[string]any {
	return th.change(user, "", fields)
}

func (th *thing) patchStatus(user string, fields ...any) map[string]any {
	return th.change(user, "status", fields)
}

func (th *thing) change(user, subresource string, fields []any) map[string]any {
	for pair := range slices.Chunk(fields, 2) {
		th.set(pair[0].(string), pair[1])
	}
	return th.write(user, "patch", subresource, 200)
}

// remove deletes the object immediately. The response is a Status.
func (th *thing) remove(user string) map[string]any {
	th.s.revision++
	return th.s.entry(user, "delete", th.resource, "", th.text("metadata.namespace"), th.text("metadata.name"), 200, map[string]any{
		"kind": "Status", "apiVersion": "v1", "status": "Success", "details": map[string]any{"name": th.text("metadata.name"), "uid": th.text("metadata.uid")},
	})
}

// removePod deletes a pod immediately. The response is the last state of the pod.
func (th *thing) removePod(user string) {
	th.set("metadata.deletionTimestamp", th.s.now.Format(time.RFC3339))
	th.set("metadata.deletionGracePeriodSeconds", 0)
	th.write(user, "delete", "", 200)
}

func (th *thing) conditions(list ...string) {
	var conditions []any
	for _, c := range list {
		name, status, _ := strings.Cut(c, "=")
		status, reason, _ := strings.Cut(status, "/")
		conditions = append(conditions, map[string]any{"type": name, "status": status, "reason": reason})
	}
	if err := unstructured.SetNestedSlice(th.obj, conditions, "status", "conditions"); err != nil {
		th.s.t.Fatal(err)
	}
}

// The users of most stories.

const (
	units     = "scheduling.x-k8s.io/v1alpha1/queueunits"
	queues    = "scheduling.x-k8s.io/v1alpha1/queues"
	trees     = "scheduling.sigs.k8s.io/v1beta1/elasticquotatrees"
	tfjobs    = "kubeflow.org/v1/tfjobs"
	batchJobs = "batch/v1/jobs"
	pods      = "/v1/pods"
	quotas    = "/v1/resourcequotas"
	leases    = "coordination.k8s.io/v1/leases"
)

// fourCPU is a tree of 4 cpu, all for namespace default.
const fourCPU = `{apiVersion: scheduling.sigs.k8s.io/v1beta1, kind: ElasticQuotaTree, metadata: {name: tree, namespace: kube-system}, spec: {root: {
  name: root, max: {cpu: 4}, min: {cpu: 0}, children: [{name: team, namespaces: [default], max: {cpu: "4"}, children: null}]}}}`

// treeOf returns a tree whose root has these fields.
func treeOf(root string) string {
	return `{apiVersion: scheduling.sigs.k8s.io/v1beta1, kind: ElasticQuotaTree, metadata: {name: tree, namespace: kube-system}, spec: {root: {name: root, ` + root + `}}}`
}

// setTree changes the tree.
func (s *script) setTree(root string) {
	other := newScript(s.t).create(admin, trees, treeOf(root))
	s.plays["tree"].job.patch(admin, "spec", other.obj["spec"])
}

// play is one job and its unit.
type play struct {
	s          *script
	name, path string // path is the group of a unit without a job
	job, unit  *thing
	pods, made []*thing // pods that end with the job, and all
	cpu        int
}

// tfjob creates a TFJob of one worker, held.
func (s *script) tfjob(name string, cpu int) *play {
	return &play{s: s, cpu: cpu, job: s.create(admin, tfjobs, fmt.Sprintf(`{apiVersion: kubeflow.org/v1, kind: TFJob,
  metadata: {name: %s, annotations: {scheduling.x-k8s.io/suspend: "true"}},
  spec: {runPolicy: {suspend: true}, tfReplicaSpecs: {Worker: {replicas: 1}}}}`, name))}
}

// batchJob creates a batch Job of one pod, held by its suspend field.
func (s *script) batchJob(name string, cpu int) *play {
	return &play{s: s, cpu: cpu, job: s.create(admin, batchJobs, fmt.Sprintf(`{apiVersion: batch/v1, kind: Job,
  metadata: {name: %s}, spec: {suspend: true, parallelism: 1, completions: 1}}`, name))}
}

func (p *play) enqueue() {
	p.unit = p.s.create(extensions, units, fmt.Sprintf(`{apiVersion: scheduling.x-k8s.io/v1alpha1, kind: QueueUnit,
  metadata: {name: %[1]s-unit}, spec: {consumerRef: {apiVersion: %[2]s, kind: %[3]s, namespace: default, name: %[1]s, uid: %[4]s},
  podSets: [{name: worker, count: 1, requests: {cpu: "%[5]d"}}], resource: {cpu: "%[5]d"}}}`,
		p.job.text("metadata.name"), p.job.text("apiVersion"), p.job.text("kind"), p.job.text("metadata.uid"), p.cpu))
}

func (p *play) dequeue() map[string]any {
	attempts, _, _ := unstructured.NestedFloat64(p.unit.obj, "status", "attempts")
	return p.unit.patchStatus(controller, "status.phase", "Dequeued", "status.reason", nil, "status.quota", p.s.group, "status.attempts", attempts+1)
}

func (p *play) suspendPath() string {
	if p.job.resource == batchJobs {
		return "spec.suspend"
	}
	return "spec.runPolicy.suspend"
}

func (p *play) annotation(value string) {
	annotations, _, _ := unstructured.NestedStringMap(p.job.obj, "metadata", "annotations")
	if annotations[suspendKey] != "" {
		annotations[suspendKey] = value
		if err := unstructured.SetNestedStringMap(p.job.obj, annotations, "metadata", "annotations"); err != nil {
			p.s.t.Fatal(err)
		}
	}
}

func (p *play) release() map[string]any {
	p.annotation("false")
	return p.job.patch(extensions, p.suspendPath(), false)
}

func (p *play) suspend(user string) map[string]any {
	p.annotation("true")
	return p.job.patch(user, p.suspendPath(), true)
}

// start creates the job's pod as the operator.
func (p *play) start() *thing { return p.startWith(p.cpu) }

// startWith creates another pod of the job as the operator.
func (p *play) startWith(cpu int) *thing {
	pod := p.s.create(operator, pods, fmt.Sprintf(`{apiVersion: v1, kind: Pod, metadata: {name: %[1]s-%[5]d,
  labels: {training.kubeflow.org/job-name: %[1]s}, ownerReferences: [{kind: %[2]s, name: %[1]s, uid: %[3]s, controller: true}]},
  spec: {containers: [{name: main, resources: {requests: {cpu: "%[4]d"}}}]}, status: {phase: Pending}}`,
		p.job.text("metadata.name"), p.job.text("kind"), p.job.text("metadata.uid"), cpu, len(p.made)))
	p.pods, p.made = append(p.pods, pod), append(p.made, pod)
	return pod
}

func (p *play) runs() {
	if p.job.resource == batchJobs {
		p.job.patchStatus("system:kube-controller-manager", "status.active", 1)
		return
	}
	p.job.conditions("Running=True")
	p.job.patchStatus(operator)
}

func (p *play) finish() map[string]any {
	for _, pod := range p.pods {
		pod.patchStatus(kwok, "status.phase", "Succeeded", "spec.nodeName", "node-0")
	}
	if p.job.resource == batchJobs {
		p.job.conditions("Complete=True")
	} else {
		p.job.conditions("Running=False", "Succeeded=True")
	}
	return p.job.patchStatus(operator)
}

func (p *play) endUnit() map[string]any {
	return p.unit.patchStatus(extensions, "status.phase", "Succeeded")
}

func (p *play) event(user, reason string) {
	p.s.create(user, "/v1/events", fmt.Sprintf(`{apiVersion: v1, kind: Event, metadata: {name: e%d}, type: Normal, reason: %s,
  involvedObject: {kind: %s, namespace: default, name: %s, uid: %s}}`, p.s.revision, reason,
		p.job.text("kind"), p.job.text("metadata.name"), p.job.text("metadata.uid")))
}

// end writes all steps from a running job to the end of its unit.
func (p *play) end() {
	p.finish()
	p.endUnit()
}

// evictFor evicts a running job and requeues its unit.
func (p *play) evictFor(reason string) {
	p.unit.conditions("Evicted=True/" + reason)
	p.unit.patchStatus(controller)
	p.suspend(extensions)
	for _, pod := range p.pods {
		pod.removePod(operator)
	}
	p.pods = nil
	p.unit.conditions("Evicted=True/Stopped")
	p.unit.patchStatus(extensions)
	p.unit.conditions("Evicted=False/Requeued")
	p.unit.patchStatus(controller, "status.phase", "Backoff", "status.reason", "Backoff")
}

// orphan deletes the job, its unit, and as the garbage collector the owners of its pods.
func (p *play) orphan() {
	p.job.set("metadata.deletionTimestamp", p.s.now.Format(time.RFC3339))
	p.job.set("metadata.deletionGracePeriodSeconds", 0)
	p.job.set("metadata.finalizers", []any{"orphan"})
	p.job.write(admin, "delete", "", 200)
	for _, pod := range p.pods {
		pod.loseOwners()
	}
	p.unit.remove(extensions)
	p.job.remove(collector)
}

// loseOwners removes the owners of a pod.
func (th *thing) loseOwners() { onlyMetadata(th.patch(collector, "metadata.ownerReferences", nil)) }

// onlyMetadata makes the response of a line that of a client that requests only metadata.
func onlyMetadata(e map[string]any) {
	e["responseObject"] = map[string]any{"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1",
		"metadata": e["responseObject"].(map[string]any)["metadata"]}
}

// terminate deletes a pod with a grace period, in seconds.
func (th *thing) terminate(user string, grace int) {
	th.set("metadata.deletionTimestamp", th.s.now.Format(time.RFC3339))
	th.set("metadata.deletionGracePeriodSeconds", grace)
	th.write(user, "delete", "", 200)
}

// by sets the process that sent the write.
func by(instance string, entry map[string]any) {
	entry["user"].(map[string]any)["extra"] = map[string]any{"authentication.kubernetes.io/credential-id": []any{"JTI=" + instance}}
}

// lease creates the controller's lease, held by its first process.
func (s *script) lease() *thing {
	lease := s.create(controller, leases, `{apiVersion: coordination.k8s.io/v1, kind: Lease,
  metadata: {name: kube-queue-controller, namespace: kube-queue}, spec: {holderIdentity: one, leaseDurationSeconds: 15}}`)
	by("one", s.entries[len(s.entries)-1])
	return lease
}

// asking sets the request object of the last write of the script.
func (s *script) asking(fields map[string]any) {
	s.entries[len(s.entries)-1]["requestObject"] = runtime.DeepCopyJSON(fields)
}

// unanswered patches fields as a user, without a response. The patch is stored or not. A field of the
// status is one of the subresource.
func (th *thing) unanswered(stored bool, user string, fields ...any) {
	asked := map[string]any{}
	subresource := ""
	set := func(path string, value any) {
		if err := unstructured.SetNestedField(asked, value, strings.Split(path, ".")...); err != nil {
			th.s.t.Fatal(err)
		}
	}
	set("metadata.resourceVersion", th.text("metadata.resourceVersion"))
	set("metadata.uid", th.text("metadata.uid"))
	for pair := range slices.Chunk(fields, 2) {
		path := pair[0].(string)
		if strings.HasPrefix(path, "status.") {
			subresource = "status"
		}
		set(path, pair[1])
		if stored {
			th.set(path, pair[1])
		}
	}
	if stored {
		th.s.revision++
	}
	e := th.s.entry(user, "patch", th.resource, subresource, th.text("metadata.namespace"), th.text("metadata.name"), 504,
		map[string]any{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Timeout"})
	e["requestObject"] = asked
	th.s.wait(time.Second)
}

// withoutAnswer makes a create one without a response.
func (s *script) withoutAnswer(made map[string]any) {
	asked := runtime.DeepCopyJSON(made["responseObject"].(map[string]any))
	for _, field := range []string{"uid", "resourceVersion", "creationTimestamp"} {
		unstructured.RemoveNestedField(asked, "metadata", field)
	}
	made["requestObject"], made["responseObject"] = asked, nil
	made["responseStatus"] = map[string]any{"code": 500}
}

// twice creates a pod whose name exists.
func (s *script) twice(cpu int) {
	s.entry(operator, "create", pods, "", "default", "taken", 409, map[string]any{"kind": "Status", "status": "Failure", "reason": "AlreadyExists"})
	s.asking(map[string]any{"kind": "Pod", "metadata": map[string]any{"name": "taken"}, "spec": map[string]any{"containers": []any{
		map[string]any{"name": "main", "resources": map[string]any{"requests": map[string]any{"cpu": fmt.Sprint(cpu)}}}}}})
}

// refused adds the refusal of a pod of the job.
func (p *play) refused(message string) {
	s := p.s
	text := "pods \"x\" is forbidden: " + message
	e := s.entry(operator, "create", pods, "", "default", "", 403, map[string]any{"kind": "Status", "status": "Failure", "message": text})
	e["responseStatus"] = map[string]any{"code": 403, "message": text}
	s.asking(map[string]any{"kind": "Pod", "metadata": map[string]any{"generateName": "x-", "ownerReferences": []any{map[string]any{
		"kind": p.job.text("kind"), "uid": p.job.text("metadata.uid"), "controller": true}}}})
}

// rulesOf returns the violated rules of a log, each once.
func rulesOf(t testing.TB, log *Log, options Options) []string {
	t.Helper()
	report, err := log.Check(options)
	if err != nil {
		t.Fatal(err)
	}
	var rules []string
	for _, v := range report.Violations() {
		rules = append(rules, v.Rule)
	}
	slices.Sort(rules)
	return slices.Compact(rules)
}
