package standin

import (
	"context"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"kube-queue.dev/kube-queue/test/require"
)

const (
	rayHost = "c-head-svc.ns.svc.cluster.local:8265"
	rayID   = "job-x7x7x"
	// rayStart is the start time of the head pod in seconds. Jobs take 8 s by default.
	rayStart = 1000
)

// rayWorld is a fake API server with one Ray cluster. Objects are found by path and label selector.
// Writes are recorded and have no effect.
type rayWorld struct {
	objects map[string]string
	written []string
	now     time.Time
	handler http.Handler
}

const (
	headPods      = "/api/v1/namespaces/ns/pods?ray.io/cluster=c"
	submitterPods = "/api/v1/namespaces/ns/pods?batch.kubernetes.io/job-name=job"
)

func newRayWorld(t *testing.T) *rayWorld {
	t.Helper()
	w := &rayWorld{now: time.Unix(rayStart+1, 0), objects: map[string]string{
		"/api/v1/namespaces/ns/services/c-head-svc": `{"spec":{"selector":{"ray.io/cluster":"c"}}}`,
		submitterPods: `{"items":[]}`,
	}}
	w.head("")
	server := httptest.NewServer(w)
	t.Cleanup(server.Close)
	dashboard := newRayDashboard(clientOf(t, server.URL), 8*time.Second, log.New(io.Discard, "", 0))
	dashboard.now = func() time.Time { return w.now }
	w.handler = dashboard.handler()
	return w
}

func (w *rayWorld) ServeHTTP(answer http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodPatch {
		body, _ := io.ReadAll(r.Body)
		w.written = append(w.written, r.URL.Path+" "+string(body))
		fmt.Fprint(answer, "{}")
		return
	}
	path := r.URL.Path
	if selector := r.URL.Query().Get("labelSelector"); selector != "" {
		path += "?" + selector
	}
	if w.objects[path] == "" {
		http.Error(answer, `{"message":"not found"}`, http.StatusNotFound)
		return
	}
	fmt.Fprint(answer, w.objects[path])
}

// rayPod is a running pod that started with the cluster.
func rayPod(name, containers string) string {
	return fmt.Sprintf(`{"items":[{"metadata":{"name":%q,"namespace":"ns","uid":"uid-of-%s","resourceVersion":"7"},"spec":{"containers":[%s]},
		"status":{"phase":"Running","conditions":[{"type":"PodReadyToStartContainers","message":"started at %d000 ms"}],
		"containerStatuses":[{"name":"ray-head","ready":true,"state":{"running":{"startedAt":"then"}}},{"name":"submitter","image":"i","ready":true,"state":{"running":{"startedAt":"then"}}}]}}]}`,
		name, name, containers, rayStart)
}

const submitterContainer = `{"name":"submitter","env":[{"name":"RAY_JOB_SUBMISSION_ID","value":"` + rayID + `"}]}`

func (w *rayWorld) head(moreContainers string) {
	w.objects[headPods] = rayPod("head", `{"name":"ray-head"}`+moreContainers)
}

// rayJob adds the RayJob, which takes 3 s, with more annotations.
func (w *rayWorld) rayJob(mode, annotations string) {
	w.objects["/apis/ray.io/v1/namespaces/ns/rayjobs/job"] = fmt.Sprintf(`{"metadata":{"name":"job","namespace":"ns",
		"annotations":{"localcluster.kube-queue.dev/run-time":"3s"%s}},"spec":{"entrypoint":"python x.py","submissionMode":%q},"status":{"jobId":%q}}`, annotations, mode, rayID)
}

// ask asks for the job like a client that uses the stand-in as its proxy.
func (w *rayWorld) ask(ctx context.Context) (answer string) {
	recorder := httptest.NewRecorder()
	w.handler.ServeHTTP(recorder, httptest.NewRequestWithContext(ctx, http.MethodGet, "http://"+rayHost+"/api/jobs/"+rayID, nil))
	return recorder.Body.String()
}

func TestSubmitterEndsAlthoughTheOperatorHasGivenUp(t *testing.T) {
	w := newRayWorld(t)
	w.rayJob(k8sJobMode, "")
	w.objects[submitterPods] = rayPod("submitter", submitterContainer)
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	w.ask(gone)
	if len(w.written) != 1 || !strings.Contains(w.written[0], "/pods/submitter ") {
		t.Errorf("written is %q, want the submitter", w.written)
	}
}

func TestSidecarEndsAfterItsJob(t *testing.T) {
	for annotations, want := range map[string]string{
		"": `"exitCode":0,"finishedAt":"1970-01-01T00:16:43Z","reason":"Completed","startedAt":"then"`,
		`,"localcluster.kube-queue.dev/exit-code":"1"`: `"exitCode":1,"finishedAt":"1970-01-01T00:16:43Z","reason":"Error","startedAt":"then"`,
	} {
		w := newRayWorld(t)
		w.rayJob(sidecarMode, annotations)
		w.head("," + submitterContainer)
		if got := w.ask(t.Context()); !strings.Contains(got, `"RUNNING"`) || len(w.written) != 0 {
			t.Errorf("the answer is %s, and written was %q", got, w.written)
		}
		w.now = time.Unix(rayStart+3, 0)
		w.ask(t.Context())
		if len(w.written) != 1 {
			t.Fatalf("written was %q", w.written)
		}
		require.Says(t, "the request", w.written[0], "/api/v1/namespaces/ns/pods/head/status ", `"resourceVersion":"7"`, want,
			`{"name":"ray-head","ready":true,"state":{"running":{"startedAt":"then"}}}`,
			`"reason":"ContainersNotReady","status":"False","type":"Ready"`)
		w.objects[headPods] = strings.ReplaceAll(w.objects[headPods], `"running"`, `"terminated"`)
		if w.ask(t.Context()); len(w.written) != 1 {
			t.Errorf("it ended twice: %q", w.written)
		}
	}
}
