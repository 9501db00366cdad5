package standin

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log"
	"net"
	"net/http"
	"os"
	"time"

	"kube-queue.dev/kube-queue/test/localcluster/internal/kube"
)

const (
	// RayDashboard simulates the dashboards of all Ray clusters. As an HTTP proxy, it serves requests to any head
	// Service. No job really runs: annotations of the RayJob set how long a job takes and how it ends. It simulates
	// only jobs, not Ray Serve.
	RayDashboard = "ray-dashboard"
	// longestAnswer limits the work on an answer that the client may no longer wait for.
	longestAnswer = time.Minute
	// HealthPath is the path of the health endpoint.
	HealthPath = "/healthz"
)

func serveRayDashboard(ctx context.Context, client *kube.Client, args []string) error {
	flags := flag.NewFlagSet(RayDashboard, flag.ContinueOnError)
	listen := flags.String("listen", "127.0.0.1:0", "the `ADDRESS` to serve at")
	runTime := flags.Duration("run-time", 8*time.Second, "how long a job runs that does not say so itself")
	if err := flags.Parse(args); err != nil {
		return err
	}
	listener, err := net.Listen("tcp", *listen)
	if err != nil {
		return err
	}
	dashboard := newRayDashboard(client, *runTime, log.New(os.Stderr, "", log.LstdFlags|log.Lmicroseconds))
	server := &http.Server{Handler: dashboard.handler(), ReadHeaderTimeout: 10 * time.Second}
	stop := context.AfterFunc(ctx, func() { server.Close() })
	defer stop()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// handler serves KubeRay's requests about jobs. The host of a request determines the Ray cluster.
func (d *rayDashboard) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+HealthPath, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	for pattern, answer := range map[string]func(*http.Request) (any, error){
		"GET /api/jobs/{id}":       d.info,
		"POST /api/jobs/{$}":       d.submit,
		"POST /api/jobs/{id}/stop": d.stop,
	} {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			d.answer(w, r, answer)
		})
	}
	return mux
}

func (d *rayDashboard) answer(w http.ResponseWriter, r *http.Request, answer func(*http.Request) (any, error)) {
	// KubeRay gives up after 2 s, and waits longer before each further request. A slow answer must still take effect,
	// because only the end of the submitter makes KubeRay look again.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), longestAnswer)
	defer cancel()
	out, err := answer(r.WithContext(ctx))
	if err != nil {
		code := http.StatusBadGateway
		if refused, is := errors.AsType[*refusal](err); is {
			code = refused.code
		}
		d.log.Printf("%s %s%s: %d %v", r.Method, r.Host, r.URL.Path, code, err)
		http.Error(w, err.Error(), code)
		return
	}
	data, err := json.Marshal(out)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	d.log.Printf("%s %s%s: %s", r.Method, r.Host, r.URL.Path, data)
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(data)
}

// refusal is an error response of a real dashboard. Any other error means that no working dashboard is at that
// address.
type refusal struct {
	code int
	text string
}

func (r *refusal) Error() string { return r.text }

func refuse(code int, format string, args ...any) error {
	return &refusal{code, fmt.Sprintf(format, args...)}
}

// jobInfo is a job in the API of a dashboard. Times are in milliseconds.
type jobInfo struct {
	Type         string      `json:"type"`
	SubmissionID string      `json:"submission_id"`
	Entrypoint   string      `json:"entrypoint,omitempty"`
	Status       rayJobState `json:"status"`
	Message      string      `json:"message"`
	StartTime    int64       `json:"start_time,omitempty"`
	EndTime      int64       `json:"end_time,omitempty"`
}

func (d *rayDashboard) info(r *http.Request) (any, error) {
	job, err := d.find(r.Context(), r.Host, r.PathValue("id"))
	if err != nil {
		return nil, err
	}
	state, ended := job.state(d.now())
	if err := d.leadSubmitter(r.Context(), job, state); err != nil {
		// The next request tries again. This one has been answered.
		d.log.Printf("submitter of job %s: %v", job.id, err)
	}
	info := jobInfo{
		Type: "SUBMISSION", SubmissionID: job.id, Entrypoint: job.entrypoint,
		Status: state, Message: state.message(),
	}
	if !job.at.IsZero() {
		info.StartTime = job.at.UnixMilli()
	}
	if !ended.IsZero() {
		info.EndTime = ended.UnixMilli()
	}
	return info, nil
}

// submit accepts a job by HTTP, as KubeRay sends it in HTTPMode.
func (d *rayDashboard) submit(r *http.Request) (any, error) {
	var asked struct {
		SubmissionID string `json:"submission_id"`
		Entrypoint   string `json:"entrypoint"`
	}
	if err := json.NewDecoder(r.Body).Decode(&asked); err != nil {
		return nil, refuse(http.StatusBadRequest, "the job is not JSON: %v", err)
	}
	if asked.SubmissionID == "" || asked.Entrypoint == "" {
		return nil, refuse(http.StatusBadRequest, "a job needs a submission_id and an entrypoint")
	}
	head, err := d.head(r.Context(), r.Host)
	if err != nil {
		return nil, err
	}
	key := rayJobKey{head.Metadata.UID, asked.SubmissionID}
	isNew := false
	d.remember(key, func(known *submission) {
		if isNew = known.at.IsZero(); isNew {
			*known = submission{at: d.now(), entrypoint: asked.Entrypoint}
		}
	})
	if !isNew {
		// KubeRay looks for the second part of this message.
		return nil, refuse(http.StatusInternalServerError, "Job %s is here already. Please use a different submission_id.", key.id)
	}
	return map[string]string{"job_id": key.id, "submission_id": key.id}, nil
}

func (d *rayDashboard) stop(r *http.Request) (any, error) {
	job, err := d.find(r.Context(), r.Host, r.PathValue("id"))
	if err != nil {
		return nil, err
	}
	now := d.now()
	state, _ := job.state(now)
	if !state.ended() {
		d.remember(job.rayJobKey, func(known *submission) { known.stopped = now })
	}
	return map[string]bool{"stopped": !state.ended()}, nil
}
