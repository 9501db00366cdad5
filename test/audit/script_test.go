package audit

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"kube-queue.dev/kube-queue/test/require"
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
	controller   = Controller
	extensions   = Extensions
	quotaSteward = "system:serviceaccount:kube-system:resourcequota-controller"

	suspendKey = "scheduling.x-k8s.io/suspend"
	pods       = "/v1/pods"
)

func newScript(t testing.TB) *script {
	return &script{t: t, group: "root/team", revision: 100, plays: map[string]*play{}, now: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)}
}

func (s *script) wait(d time.Duration) { s.now = s.now.Add(d) }

func (s *script) last() map[string]any { return s.entries[len(s.entries)-1] }

func (s *script) log() *Log {
	s.t.Helper()
	log, err := Read(bytes.NewReader(s.bytes()))
	require.NoError(s.t, err)
	return log
}

func (s *script) bytes() []byte {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	for _, e := range s.entries {
		require.NoError(s.t, encoder.Encode(e))
	}
	return out.Bytes()
}

// stamp formats a time as the API server does.
func stamp(t time.Time) string { return t.Format("2006-01-02T15:04:05.000000Z") }

func (s *script) entry(user, verb, resource, subresource string, namespace, name string, code int, response map[string]any) map[string]any {
	parts := strings.Split(resource, "/")
	received := s.now
	s.wait(2 * time.Millisecond)
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

// parse reads an object in YAML.
func (s *script) parse(text string) map[string]any {
	s.t.Helper()
	object := map[string]any{}
	require.NoError(s.t, yaml.Unmarshal([]byte(s.reference(text)), &object))
	return object
}

// thing is an object in a script.
type thing struct {
	s        *script
	resource string // group/version/resource
	obj      map[string]any
}

// create creates an object from YAML as a user. name is used if the object has none.
func (s *script) create(user, kind, name, text string) *thing {
	s.t.Helper()
	k, known := kinds[kind]
	if !known {
		s.t.Fatalf("%s: no kind %s", name, kind)
	}
	th := &thing{s, k.resource, s.parse(text)}
	s.names++
	th.set("kind", k.kind)
	th.set("apiVersion", strings.TrimPrefix(path.Dir(k.resource), "/"))
	th.set("metadata.name", cmp.Or(th.text("metadata.name"), name))
	th.set("metadata.namespace", cmp.Or(th.text("metadata.namespace"), "default"))
	th.set("metadata.uid", fmt.Sprintf("uid-%d", s.names))
	th.set("metadata.creationTimestamp", s.now.Format(time.RFC3339))
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
	require.NoError(th.s.t, unstructured.SetNestedField(th.obj, value, strings.Split(path, ".")...))
}

func (th *thing) text(path string) string { return textAt(th.obj, path) }

// textAt returns the text at a path, or "".
func textAt(object map[string]any, path string) string {
	text, _, _ := unstructured.NestedString(object, strings.Split(path, ".")...)
	return text
}

func (th *thing) write(user, verb, subresource string, code int) map[string]any {
	th.s.revision++
	th.set("metadata.resourceVersion", fmt.Sprint(th.s.revision))
	return th.s.entry(user, verb, th.resource, subresource, th.text("metadata.namespace"), th.text("metadata.name"), code, th.obj)
}

// patch sets fields, given as alternating paths and values.
func (th *thing) patch(user string, fields ...any) map[string]any { return th.change(user, "", fields) }

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
func (th *thing) remove(user string) {
	th.s.revision++
	th.s.entry(user, "delete", th.resource, "", th.text("metadata.namespace"), th.text("metadata.name"), 200, map[string]any{
		"kind": "Status", "apiVersion": "v1", "status": "Success", "details": map[string]any{"name": th.text("metadata.name"), "uid": th.text("metadata.uid")},
	})
}

// terminate deletes a pod with a grace period, in seconds. The response is the last state of the pod.
func (th *thing) terminate(user string, grace int) {
	th.set("metadata.deletionTimestamp", th.s.now.Format(time.RFC3339))
	th.set("metadata.deletionGracePeriodSeconds", grace)
	th.write(user, "delete", "", 200)
}

// collect deletes all objects of the kind.
func (th *thing) collect(user string) map[string]any {
	return th.s.entry(user, "deletecollection", th.resource, "", "default", "", 200, map[string]any{"kind": "List", "items": []any{th.obj}})
}

// loseOwners removes the owners of a pod.
func (th *thing) loseOwners() { onlyMetadata(th.patch(collector, "metadata.ownerReferences", nil)) }

// onlyMetadata turns the response of a line into one for a client that requests only metadata.
func onlyMetadata(e map[string]any) {
	e["responseObject"] = map[string]any{"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1",
		"metadata": e["responseObject"].(map[string]any)["metadata"]}
}

// conditions replaces the conditions, given as in Evicted=True/Preempted.
func (th *thing) conditions(user string, list ...string) {
	var conditions []any
	for _, c := range list {
		name, status, _ := strings.Cut(c, "=")
		status, reason, _ := strings.Cut(status, "/")
		conditions = append(conditions, map[string]any{"type": name, "status": status, "reason": reason})
	}
	th.patchStatus(user, "status.conditions", conditions)
}

// unanswered patches fields as a user, without a response. Without fields, the patch is not stored.
func (th *thing) unanswered(user string, fields ...any) {
	for pair := range slices.Chunk(fields, 2) {
		th.set(pair[0].(string), pair[1])
	}
	if len(fields) > 0 {
		th.s.revision++
	}
	th.s.entry(user, "patch", th.resource, "", th.text("metadata.namespace"), th.text("metadata.name"), 504,
		map[string]any{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Timeout"})
	th.s.wait(time.Second)
}

// by sets the process that sent the write.
func by(instance string, entry map[string]any) {
	entry["user"].(map[string]any)["extra"] = map[string]any{"authentication.kubernetes.io/credential-id": []any{"JTI=" + instance}}
}

// rulesOf returns the violated rules of a log, each once.
func rulesOf(t testing.TB, log *Log, options Options) []string {
	t.Helper()
	report, err := log.Check(options)
	require.NoError(t, err)
	var rules []string
	for _, v := range report.Violations() {
		rules = append(rules, v.Rule)
	}
	slices.Sort(rules)
	return slices.Compact(rules)
}
