package standin

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"kube-queue.dev/kube-queue/test/localcluster/internal/kube"
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
	rayJobs       = "/apis/ray.io/v1/namespaces/ns/rayjobs"
)

func newRayWorld(t *testing.T) *rayWorld {
	t.Helper()
	w := &rayWorld{now: time.Unix(rayStart+1, 0), objects: map[string]string{
		"/api/v1/namespaces/ns/services/c-head-svc": `{"spec":{"selector":{"ray.io/cluster":"c"}}}`,
		submitterPods:    `{"items":[]}`,
		rayJobs:          `{"items":[]}`,
		rayJobs + "/job": "",
	}}
	w.head("Running", "")
	server := httptest.NewServer(w)
	t.Cleanup(server.Close)
	dashboard := newRayDashboard(kube.New(server.URL, "", nil), 8*time.Second, log.New(io.Discard, "", 0))
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

func rayPodJSON(name, phase, annotations string, started int64, containers string) string {
	return fmt.Sprintf(`{"metadata":{"name":%q,"namespace":"ns","uid":"uid-of-%s","resourceVersion":"7","annotations":{%s}},"spec":{"containers":[%s]},
		"status":{"phase":%q,"conditions":[{"type":"PodReadyToStartContainers","message":"started at %d000 ms"}],
		"containerStatuses":[{"name":"ray-head","ready":true,"state":{"running":{"startedAt":"then"}}},{"name":"submitter","image":"i","ready":true,"state":{"running":{"startedAt":"then"}}}]}}`,
		name, name, annotations, containers, phase, started)
}

const submitterContainer = `{"name":"submitter","env":[{"name":"RAY_JOB_SUBMISSION_ID","value":"` + rayID + `"}]}`

func (w *rayWorld) head(phase, moreContainers string) {
	w.objects[headPods] = `{"items":[` + rayPodJSON("head", phase, "", rayStart, `{"name":"ray-head"}`+moreContainers) + `]}`
}

// rayJob adds the RayJob with its annotations and the rest of its spec.
func (w *rayWorld) rayJob(mode, annotations, spec string) {
	w.objects[rayJobs+"/job"] = fmt.Sprintf(`{"metadata":{"name":"job","namespace":"ns","annotations":{%s}},
		"spec":{"entrypoint":"python x.py","submissionMode":%q%s},"status":{"jobId":%q}}`, annotations, mode, spec, rayID)
}

// submitter adds a pod that started some seconds after the head pod.
func (w *rayWorld) submitter(phase, annotations string, after int64) {
	w.objects[submitterPods] = `{"items":[` + rayPodJSON("submitter", phase, annotations, rayStart+after, submitterContainer) + `]}`
}

// ask sends a request like a client with the stand-in as proxy.
func (w *rayWorld) ask(method, path, body string) (int, string) {
	answer := httptest.NewRecorder()
	w.handler.ServeHTTP(answer, httptest.NewRequest(method, "http://"+rayHost+path, strings.NewReader(body)))
	return answer.Code, strings.TrimSpace(answer.Body.String())
}

// state returns the job's state on the dashboard, or the code of an error response.
func (w *rayWorld) state(t *testing.T) string {
	t.Helper()
	code, body := w.ask(http.MethodGet, "/api/jobs/"+rayID, "")
	if code != http.StatusOK {
		return fmt.Sprint(code)
	}
	var info jobInfo
	if err := json.Unmarshal([]byte(body), &info); err != nil {
		t.Fatalf("%v in %s", err, body)
	}
	if info.SubmissionID != rayID || info.Message == "" || (info.EndTime != 0) != info.Status.ended() {
		t.Errorf("an invalid response: %s", body)
	}
	return string(info.Status)
}

const (
	runs3s = `"localcluster.kube-queue.dev/run-time":"3s"`
	never  = `"localcluster.kube-queue.dev/run-time":"never"`
	fails  = `"localcluster.kube-queue.dev/exit-code":"1"`
)

func TestStateOfAJobFollowsItsCluster(t *testing.T) {
	for _, test := range []struct {
		name  string
		world func(*rayWorld)
		// after is the time of the request, in seconds after the start of the head pod.
		after int64
		want  string
	}{
		{"no such job", func(*rayWorld) {}, 1, "404"},
		{"no head pod that runs", func(w *rayWorld) { w.rayJob(k8sJobMode, "", ""); w.head("Pending", "") }, 1, "502"},
		{"no head Service", func(w *rayWorld) { delete(w.objects, "/api/v1/namespaces/ns/services/c-head-svc") }, 1, "502"},
		{"no RayJobs", func(w *rayWorld) { delete(w.objects, rayJobs) }, 1, "502"},
		{"the RayJob of that name has another job", func(w *rayWorld) { w.objects[rayJobs+"/job"] = `{"status":{"jobId":"job-other"}}` }, 1, "404"},

		{"no submitter yet", func(w *rayWorld) { w.rayJob(k8sJobMode, "", "") }, 1, "PENDING"},
		{"the submitter waits for a node", func(w *rayWorld) {
			w.rayJob(k8sJobMode, "", "")
			w.objects[submitterPods] = `{"items":[{"spec":{"containers":[` + submitterContainer + `]},"status":{"phase":"Pending"}}]}`
		}, 20, "PENDING"},
		{"the submitter has begun", func(w *rayWorld) { w.rayJob(k8sJobMode, "", ""); w.submitter("Running", "", 2) }, 9, "RUNNING"},
		{"it ran as long as pods do", func(w *rayWorld) { w.rayJob(k8sJobMode, "", ""); w.submitter("Running", "", 2) }, 10, "SUCCEEDED"},
		{"it ran its own time", func(w *rayWorld) { w.rayJob(k8sJobMode, runs3s, ""); w.submitter("Running", "", 2) }, 5, "SUCCEEDED"},
		{"it runs its own time", func(w *rayWorld) { w.rayJob(k8sJobMode, runs3s, ""); w.submitter("Running", "", 2) }, 4, "RUNNING"},
		{"it never ends", func(w *rayWorld) { w.rayJob(k8sJobMode, never, ""); w.submitter("Running", "", 2) }, 1e9, "RUNNING"},
		{"its time is no duration", func(w *rayWorld) {
			w.rayJob(k8sJobMode, `"localcluster.kube-queue.dev/run-time":"long"`, "")
			w.submitter("Running", "", 2)
		}, 10, "SUCCEEDED"},
		{"it is to fail", func(w *rayWorld) { w.rayJob(k8sJobMode, runs3s+","+fails, ""); w.submitter("Running", "", 2) }, 5, "FAILED"},
		{"it is to fail later", func(w *rayWorld) { w.rayJob(k8sJobMode, runs3s+","+fails, ""); w.submitter("Running", "", 2) }, 4, "RUNNING"},
		{"the submitter itself failed", func(w *rayWorld) { w.rayJob(k8sJobMode, "", ""); w.submitter("Failed", fails, 2) }, 5, "404"},
		{"an earlier head pod had it", func(w *rayWorld) { w.rayJob(k8sJobMode, "", ""); w.submitter("Running", "", -2) }, 1, "404"},
		{"the submitter is of another job", func(w *rayWorld) {
			w.rayJob(k8sJobMode, "", "")
			w.objects[submitterPods] = `{"items":[` + rayPodJSON("other", "Running", "", rayStart, `{"name":"submitter"}`) + `]}`
		}, 20, "PENDING"},
		{"the user gave the ID", func(w *rayWorld) {
			w.rayJob(k8sJobMode, "", "")
			w.objects[rayJobs] = `{"items":[{"status":{"jobId":"other"}},` + w.objects[rayJobs+"/job"] + `]}`
			delete(w.objects, rayJobs+"/job")
			w.submitter("Running", "", 2)
		}, 9, "RUNNING"},

		{"HTTPMode, and nobody submitted", func(w *rayWorld) { w.rayJob("HTTPMode", "", "") }, 1, "404"},
		{"SidecarMode", func(w *rayWorld) { w.rayJob(sidecarMode, runs3s, ""); w.head("Running", ","+submitterContainer) }, 2, "RUNNING"},
		{"SidecarMode, later", func(w *rayWorld) { w.rayJob(sidecarMode, runs3s, ""); w.head("Running", ","+submitterContainer) }, 3, "SUCCEEDED"},
		{"SidecarMode, on another cluster", func(w *rayWorld) { w.rayJob(sidecarMode, "", "") }, 3, "404"},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := newRayWorld(t)
			test.world(w)
			w.now = time.Unix(rayStart+test.after, 0)
			if got := w.state(t); got != test.want {
				t.Errorf("it is %s, want %s", got, test.want)
			}
		})
	}
}

func TestJobsOverHTTP(t *testing.T) {
	w := newRayWorld(t)
	w.rayJob("HTTPMode", runs3s, "")
	job, submission := "/api/jobs/"+rayID, `{"submission_id":"`+rayID+`","entrypoint":"python x.py"}`
	for _, step := range []struct {
		method, path, body string
		code               int
		want, state        string
	}{
		{http.MethodPost, job + "/stop", "", 404, "does not exist", "404"},
		{http.MethodPost, "/api/jobs/", "nonsense", 400, "not JSON", "404"},
		{http.MethodPost, "/api/jobs/", `{"submission_id":"a"}`, 400, "entrypoint", "404"},
		{http.MethodPost, "/api/jobs/", submission, 200, `"job_id":"` + rayID + `"`, "RUNNING"},
		{http.MethodPost, "/api/jobs/", submission, 500, "Please use a different submission_id", "RUNNING"},
		{http.MethodPost, job + "/stop", "", 200, `{"stopped":true}`, "STOPPED"},
		{http.MethodPost, job + "/stop", "", 200, `{"stopped":false}`, "STOPPED"},
		{http.MethodGet, "/api/serve/applications/", "", 404, "not found", "STOPPED"},
	} {
		code, body := w.ask(step.method, step.path, step.body)
		if code != step.code || !strings.Contains(body, step.want) {
			t.Errorf("%s %s: got %d %s, want %d %s", step.method, step.path, code, body, step.code, step.want)
		}
		if got := w.state(t); got != step.state {
			t.Errorf("after %s %s it is %s, want %s", step.method, step.path, got, step.state)
		}
	}
	w.objects[headPods] = strings.ReplaceAll(w.objects[headPods], "uid-of-head", "uid-of-next")
	if got := w.state(t); got != "404" {
		t.Errorf("a new head pod has the job of the old one: %s", got)
	}
}

func TestJobOverHTTPEndsAfterItsRunTime(t *testing.T) {
	w := newRayWorld(t)
	w.rayJob("HTTPMode", runs3s, "")
	w.ask(http.MethodPost, "/api/jobs/", `{"submission_id":"`+rayID+`","entrypoint":"python x.py"}`)
	for _, want := range []string{"RUNNING", "SUCCEEDED"} {
		if got := w.state(t); got != want {
			t.Errorf("it is %s, want %s", got, want)
		}
		w.now = w.now.Add(3 * time.Second)
	}
}

func TestStoppedJobDoesNotStart(t *testing.T) {
	w := newRayWorld(t)
	w.rayJob(k8sJobMode, "", "")
	if code, body := w.ask(http.MethodPost, "/api/jobs/"+rayID+"/stop", ""); code != http.StatusOK {
		t.Errorf("got %d %s", code, body)
	}
	w.submitter("Running", "", 1)
	if got := w.state(t); got != "STOPPED" {
		t.Errorf("it is %s", got)
	}
}

func TestSubmitterEndsWithItsJob(t *testing.T) {
	const pod = "/api/v1/namespaces/ns/pods/submitter "
	patch := func(runTime string) []string {
		return []string{pod + `{"metadata":{"annotations":{"localcluster.kube-queue.dev/run-time":"` + runTime + `"},"uid":"uid-of-submitter"}}`}
	}
	for _, test := range []struct {
		name  string
		world func(*rayWorld)
		want  []string
	}{
		{"the job runs as long as pods do", func(w *rayWorld) { w.rayJob(k8sJobMode, "", ""); w.submitter("Running", "", 1) }, nil},
		{"the job runs its own time", func(w *rayWorld) { w.rayJob(k8sJobMode, runs3s, ""); w.submitter("Running", "", 1) }, patch("3s")},
		{"the submitter is reported already", func(w *rayWorld) { w.rayJob(k8sJobMode, runs3s, ""); w.submitter("Running", runs3s, 1) }, nil},
		{"the job's time has changed", func(w *rayWorld) { w.rayJob(k8sJobMode, runs3s, ""); w.submitter("Running", never, 1) }, patch("3s")},
		{"the job never ends", func(w *rayWorld) { w.rayJob(k8sJobMode, never, ""); w.submitter("Running", "", 1) }, patch("87600h")},
		{"the submitter has ended", func(w *rayWorld) { w.rayJob(k8sJobMode, runs3s, ""); w.submitter("Succeeded", "", 1) }, nil},
		{"the user gave its submitter a time", func(w *rayWorld) {
			w.rayJob(k8sJobMode, runs3s, `,"submitterPodTemplate":{"metadata":{"annotations":{"localcluster.kube-queue.dev/run-time":"1s"}}}`)
			w.submitter("Running", "", 1)
		}, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := newRayWorld(t)
			test.world(w)
			if got := w.state(t); got != "RUNNING" {
				t.Errorf("the job is %s", got)
			}
			if !slices.Equal(w.written, test.want) {
				t.Errorf("written was %q, want %q", w.written, test.want)
			}
		})
	}
}

func TestSubmitterEndsAlthoughTheOperatorHasGivenUp(t *testing.T) {
	w := newRayWorld(t)
	w.head("Running", "")
	w.rayJob("K8sJobMode", runs3s, "")
	w.submitter("Running", "", 0)
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	w.handler.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(gone, http.MethodGet, "http://"+rayHost+"/api/jobs/"+rayID, nil))
	if len(w.written) != 1 || !strings.Contains(w.written[0], "/pods/submitter ") {
		t.Errorf("written is %q, want the submitter", w.written)
	}
}

func TestSidecarEndsAfterItsJob(t *testing.T) {
	for annotations, want := range map[string]string{
		runs3s:               `"exitCode":0,"finishedAt":"1970-01-01T00:16:43Z","reason":"Completed","startedAt":"then"`,
		runs3s + "," + fails: `"exitCode":1,"finishedAt":"1970-01-01T00:16:43Z","reason":"Error","startedAt":"then"`,
	} {
		w := newRayWorld(t)
		w.rayJob(sidecarMode, annotations, "")
		w.head("Running", ","+submitterContainer)
		if got := w.state(t); got != "RUNNING" || len(w.written) != 0 {
			t.Errorf("it is %s, and written was %q", got, w.written)
		}
		w.now = time.Unix(rayStart+3, 0)
		w.state(t)
		if len(w.written) != 1 {
			t.Fatalf("written was %q", w.written)
		}
		for _, part := range []string{
			"/api/v1/namespaces/ns/pods/head/status ", `"resourceVersion":"7"`, want,
			`{"name":"ray-head","ready":true,"state":{"running":{"startedAt":"then"}}}`,
			`"reason":"ContainersNotReady","status":"False","type":"Ready"`,
		} {
			if !strings.Contains(w.written[0], part) {
				t.Errorf("%s is missing in %s", part, w.written[0])
			}
		}
		w.objects[headPods] = strings.ReplaceAll(w.objects[headPods], `"running"`, `"terminated"`)
		if w.state(t); len(w.written) != 1 {
			t.Errorf("it ended twice: %q", w.written)
		}
	}
}
