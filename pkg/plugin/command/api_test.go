package command

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/yaml"
)

// now is when the tests run.
var now = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// api is an API server with a few objects.
type api struct {
	t *testing.T
	// mu guards the rest.
	mu sync.Mutex
	// objects has the objects of each resource, such as "scheduling.x-k8s.io/queueunits". A resource without a key is not
	// served.
	objects map[string][]map[string]any
	// forbidden lists the refused requests by verb, resource and namespace, such as "list scheduling.x-k8s.io/queueunits
	// research".
	forbidden map[string]bool
	// conflict makes patches fail with a conflict.
	conflict bool
	// answer answers the reviews of a kind; without it, they get no answer.
	answer map[string]func(spec map[string]any) (any, *metav1.Status)
	// requests are the writes, and the reviews, in order.
	requests []string
	// lists are the answered lists, and selectors the selectors of the last one.
	lists     int
	selectors string
	// events are sent to each watch, one after the other. The connection then stays open.
	events []string
}

const (
	unitsOf  = "scheduling.x-k8s.io/queueunits"
	queuesOf = "scheduling.x-k8s.io/queues"
	treesOf  = "scheduling.sigs.k8s.io/elasticquotatrees"
	jobsOf   = "batch/jobs"
)

func newAPI(t *testing.T, manifests string) *api {
	t.Helper()
	a := &api{t: t, forbidden: map[string]bool{}, answer: map[string]func(map[string]any) (any, *metav1.Status){}, objects: map[string][]map[string]any{}}
	for _, served := range []string{unitsOf, queuesOf, treesOf, jobsOf, "/pods", "/namespaces", "/events", "kubeflow.org/tfjobs", "apps/deployments", "/limitranges", "scheduling.k8s.io/priorityclasses"} {
		a.objects[served] = nil
	}
	for _, document := range strings.Split(manifests, "\n---\n") {
		object := map[string]any{}
		if err := yaml.Unmarshal([]byte(document), &object); err != nil {
			t.Fatalf("%v\n%s", err, document)
		}
		if len(object) > 0 {
			a.add(object)
		}
	}
	return a
}

var resources = map[string]string{"QueueUnit": unitsOf, "Queue": queuesOf, "ElasticQuotaTree": treesOf, "Job": jobsOf, "TFJob": "kubeflow.org/tfjobs", "Pod": "/pods", "Namespace": "/namespaces",
	"LimitRange": "/limitranges", "PriorityClass": "scheduling.k8s.io/priorityclasses", "Event": "/events", "Deployment": "apps/deployments"}

func (a *api) add(object map[string]any) {
	resource := resources[object["kind"].(string)]
	if resource == "" {
		a.t.Fatalf("no resource for %v", object["kind"])
	}
	meta := object["metadata"].(map[string]any)
	if meta["uid"] == nil {
		meta["uid"] = "uid-" + meta["name"].(string)
	}
	meta["resourceVersion"] = strconv.Itoa(len(a.objects[resource]) + 1)
	a.objects[resource] = append(a.objects[resource], object)
}

func (a *api) serve() string {
	server := httptest.NewServer(a)
	a.t.Cleanup(server.Close)
	return server.URL
}

// ServeHTTP answers a request for objects.
func (a *api) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if r.URL.Path == "/version" {
		a.write(w, http.StatusOK, map[string]any{"gitVersion": "v1.36.0"})
		return
	}
	group, namespace, resource, name := parsePath(r.URL.Path)
	key := group + "/" + resource
	verb := map[string]string{http.MethodPatch: "patch", http.MethodPost: "create", http.MethodGet: "get"}[r.Method]
	switch {
	case verb == "get" && name == "" && r.URL.Query().Get("watch") != "":
		verb = "watch"
	case verb == "get" && name == "":
		verb = "list"
	}
	body, _ := io.ReadAll(r.Body)
	_, served := a.objects[key]
	switch {
	case group == "authorization.k8s.io":
		review := &authorizationv1.SelfSubjectAccessReview{}
		if _, _, err := scheme.Codecs.UniversalDeserializer().Decode(body, nil, review); err != nil {
			a.t.Error(err)
			return
		}
		of := review.Spec.ResourceAttributes
		review.TypeMeta = metav1.TypeMeta{APIVersion: "authorization.k8s.io/v1", Kind: "SelfSubjectAccessReview"}
		review.Status.Allowed = !a.forbidden[fmt.Sprintf("%s %s/%s %s", of.Verb, of.Group, of.Resource, of.Namespace)]
		a.write(w, http.StatusCreated, review)
	case group == "visibility.kube-queue.dev":
		a.review(w, resource, namespace, body)
	case !served:
		http.Error(w, "404 page not found", http.StatusNotFound)
	case a.forbidden[strings.TrimSpace(verb+" "+key+" "+namespace)]:
		a.refuse(w, http.StatusForbidden, metav1.StatusReasonForbidden, group, resource, name, fmt.Sprintf("%s is forbidden: User %q cannot %s resource %q in API group %q in the namespace %q",
			resource, "jane", verb, resource, group, namespace))
	case verb == "watch":
		w.Header().Set("Content-Type", "application/json")
		for _, event := range a.events {
			fmt.Fprintln(w, event)
		}
		w.(http.Flusher).Flush()
		a.mu.Unlock()
		<-r.Context().Done()
		a.mu.Lock()
	case verb == "list":
		a.list(w, r, key, group, namespace)
	default:
		a.one(w, r, key, group, namespace, resource, name, body)
	}
}

// parsePath splits the path of an object, a list, or the objects of a namespace.
func parsePath(path string) (group, namespace, resource, name string) {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	if parts[0] == "api" {
		parts = parts[2:]
	} else {
		group, parts = parts[1], parts[3:]
	}
	if len(parts) > 2 && parts[0] == "namespaces" {
		namespace, parts = parts[1], parts[2:]
	}
	resource = parts[0]
	if len(parts) > 1 {
		name = parts[1]
	}
	return group, namespace, resource, name
}

func (a *api) refuse(w http.ResponseWriter, code int, reason metav1.StatusReason, group, resource, name, message string) {
	a.write(w, code, metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure, Code: int32(code), Reason: reason, Message: message,
		Details: &metav1.StatusDetails{Group: group, Kind: resource, Name: name}})
}

func (a *api) write(w http.ResponseWriter, code int, object any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	if err := json.NewEncoder(w).Encode(object); err != nil {
		a.t.Error(err)
	}
}

func (a *api) list(w http.ResponseWriter, r *http.Request, key, group, namespace string) {
	a.lists++
	a.selectors = strings.TrimSpace(r.URL.Query().Get("labelSelector") + " " + r.URL.Query().Get("fieldSelector"))
	var items []map[string]any
	for _, object := range a.objects[key] {
		if namespace == "" || object["metadata"].(map[string]any)["namespace"] == namespace {
			items = append(items, object)
		}
	}
	start, _ := strconv.Atoi(r.URL.Query().Get("continue"))
	limit, _ := strconv.Atoi(r.URL.Query().Get("limit"))
	meta := map[string]any{"resourceVersion": "100"}
	items = items[start:]
	if limit > 0 && limit < len(items) {
		items = items[:limit]
		meta["continue"] = strconv.Itoa(start + limit)
	}
	version, kind := "v1", ""
	for known, resource := range resources {
		if resource == key {
			kind = known
		}
	}
	if group != "" {
		version = group + "/" + strings.Split(r.URL.Path, "/")[3]
	}
	if items == nil {
		items = []map[string]any{}
	}
	a.write(w, http.StatusOK, map[string]any{"apiVersion": version, "kind": kind + "List", "metadata": meta, "items": items})
}

func (a *api) one(w http.ResponseWriter, r *http.Request, key, group, namespace, resource, name string, body []byte) {
	i := slices.IndexFunc(a.objects[key], func(object map[string]any) bool {
		meta := object["metadata"].(map[string]any)
		return meta["name"] == name && (namespace == "" || meta["namespace"] == namespace)
	})
	if i < 0 {
		a.refuse(w, http.StatusNotFound, metav1.StatusReasonNotFound, group, resource, name, fmt.Sprintf("%s %q not found", resource, name))
		return
	}
	if r.Method == http.MethodPatch {
		dryRun := r.URL.Query().Get("dryRun")
		if a.conflict {
			a.refuse(w, http.StatusConflict, metav1.StatusReasonConflict, group, resource, name, "the object has been modified")
			return
		}
		a.requests = append(a.requests, strings.TrimSpace(fmt.Sprintf("PATCH %s/%s/%s %s %s", key, namespace, name, body, dryRun)))
		data, _ := json.Marshal(a.objects[key][i])
		patched, err := jsonpatch.MergePatch(data, body)
		if err != nil {
			a.t.Error(err)
		}
		object := map[string]any{}
		_ = json.Unmarshal(patched, &object)
		if dryRun == "" {
			a.objects[key][i] = object
		}
		a.write(w, http.StatusOK, object)
		return
	}
	a.write(w, http.StatusOK, a.objects[key][i])
}

// review answers a question, or refuses it as the schema of the review does.
func (a *api) review(w http.ResponseWriter, resource, namespace string, body []byte) {
	object := map[string]any{}
	if err := json.Unmarshal(body, &object); err != nil {
		a.t.Error(err)
	}
	spec, _ := object["spec"].(map[string]any)
	asked, _ := json.Marshal(spec)
	a.requests = append(a.requests, fmt.Sprintf("ASK %s %s %s", resource, namespace, asked))
	if a.forbidden["create "+resource] {
		a.refuse(w, http.StatusForbidden, metav1.StatusReasonForbidden, "visibility.kube-queue.dev", resource, "", fmt.Sprintf("%s.visibility.kube-queue.dev is forbidden: User \"jane\" cannot create resource %q", resource, resource))
		return
	}
	answer := a.answer[resource]
	if answer == nil && a.answer["older"] != nil {
		http.Error(w, "404 page not found", http.StatusNotFound)
		return
	}
	if answer == nil {
		a.refuse(w, http.StatusUnprocessableEntity, metav1.StatusReasonInvalid, "visibility.kube-queue.dev", resource, "", "is invalid: <nil>: Invalid value: nothing has answered; create the review with dryRun=All")
		return
	}
	status, refusal := answer(spec)
	if refusal != nil {
		a.write(w, int(refusal.Code), refusal)
		return
	}
	object["status"] = status
	a.write(w, http.StatusCreated, object)
}

// terminal is the environment that the plugin runs in.
type terminal struct {
	width  int
	colour bool
	stdin  string
	// wait is called instead of waiting.
	wait func(context.Context, time.Duration) bool
}

// run runs the plugin and returns what it has written.
func (a *api) run(args ...string) (code int, stdout, stderr string) {
	return a.runIn(terminal{}, args...)
}

func (a *api) runIn(in terminal, args ...string) (code int, stdout, stderr string) {
	a.t.Helper()
	return execute(a.t, a.t.Context(), in, a.kubeconfig(), args...)
}

func (a *api) kubeconfig() string { return kubeconfigOf(a.t, a.serve()) }

func kubeconfigOf(t testing.TB, server string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "kubeconfig")
	config := fmt.Sprintf(`{apiVersion: v1, kind: Config, current-context: here, clusters: [{name: here, cluster: {server: %q}}], users: [{name: jane, user: {token: t}}],
		contexts: [{name: here, context: {cluster: here, user: jane, namespace: research}}]}`, server)
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func execute(t testing.TB, ctx context.Context, in terminal, kubeconfig string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	env := Environment{Streams: genericiooptions.IOStreams{In: strings.NewReader(in.stdin), Out: &out, ErrOut: &errs}, Terminal: in.width > 0, Width: in.width, NoColour: !in.colour,
		Now: func() time.Time { return now }, Wait: in.wait}
	code = Run(ctx, env, append([]string{"--kubeconfig", kubeconfig, "--request-timeout", "10s"}, args...))
	return code, out.String(), errs.String()
}
