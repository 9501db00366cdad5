package standin

import (
	"context"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// Submission modes with a submitter. In the other modes jobs are submitted by HTTP.
const (
	k8sJobMode  = "K8sJobMode"
	sidecarMode = "SidecarMode"
)

// exitCode returns the exit code in the annotation, or 0.
func (m metadata) exitCode() int {
	code, err := strconv.Atoi(m.Annotations[exitCodeAnnotation])
	if err != nil {
		return 0
	}
	return code
}

// rayJob has the needed fields of a RayJob.
type rayJob struct {
	Metadata metadata
	Spec     struct {
		Entrypoint, SubmissionMode string
		SubmitterPodTemplate       struct{ Metadata metadata }
	}
	Status struct{ JobID string }
}

// forever is the run time of jobs with the annotation value never.
const forever = time.Duration(1<<63 - 1)

// runTime returns how long the job runs. As for pods, an invalid duration is ignored.
func (j *rayJob) runTime(usual time.Duration) time.Duration {
	given := j.Metadata.Annotations[runTimeAnnotation]
	if given == "never" {
		return forever
	}
	if own, err := time.ParseDuration(given); err == nil {
		return own
	}
	return usual
}

// startMessage matches the message in which the simulated kubelet records the start in
// milliseconds.
var startMessage = regexp.MustCompile(`^started at ([0-9]+) ms$`)

// started returns when the pod started, if it has.
func (p *pod) started() (at time.Time, has bool) {
	for _, condition := range p.Status.Conditions {
		match := startMessage.FindStringSubmatch(condition.Message)
		if condition.Type != "PodReadyToStartContainers" || match == nil {
			continue
		}
		if ms, err := strconv.ParseInt(match[1], 10, 64); err == nil {
			return time.UnixMilli(ms), true
		}
	}
	return p.Status.StartTime, !p.Status.StartTime.IsZero()
}

// submitter returns the container that submits the job, if any. KubeRay passes it the ID.
func (p *pod) submitter(id string) string {
	for _, container := range p.Spec.Containers {
		for _, variable := range container.Env {
			if variable.Name == "RAY_JOB_SUBMISSION_ID" && variable.Value == id {
				return container.Name
			}
		}
	}
	return ""
}

// head returns the running pod of the head Service at host. Without it, there is no dashboard.
func (d *rayDashboard) head(ctx context.Context, host string) (*pod, error) {
	// SERVICE.NAMESPACE.svc.DOMAIN:PORT
	names := strings.SplitN(host, ".", 4)
	if len(names) < 4 || names[2] != "svc" {
		return nil, fmt.Errorf("%s is not the address of a Service", host)
	}
	var service struct {
		Spec struct{ Selector map[string]string }
	}
	if err := d.client.Get(ctx, "/api/v1/namespaces/"+names[1]+"/services/"+names[0], &service); err != nil {
		return nil, err
	}
	pods, err := listPods(ctx, d.client, names[1], service.Spec.Selector)
	if err != nil {
		return nil, err
	}
	running := slices.IndexFunc(pods, func(p pod) bool {
		return p.Status.Phase == "Running" && p.Metadata.DeletionTimestamp == ""
	})
	if running < 0 {
		return nil, fmt.Errorf("%s has no running head pod", host)
	}
	return &pods[running], nil
}

// rayJob returns the RayJob with this job ID, or nil. KubeRay derives the ID from the name, so it usually does not
// need a list.
func (d *rayDashboard) rayJob(ctx context.Context, namespace, id string) (*rayJob, error) {
	all := "/apis/ray.io/v1/namespaces/" + namespace + "/rayjobs"
	if end := strings.LastIndex(id, "-"); end > 0 {
		var likely rayJob
		err := d.client.Get(ctx, all+"/"+url.PathEscape(id[:end]), &likely)
		if err == nil && likely.Status.JobID == id {
			return &likely, nil
		}
		if err != nil && !apierrors.IsNotFound(err) {
			return nil, err
		}
	}
	var list struct{ Items []rayJob }
	if err := d.client.Get(ctx, all, &list); err != nil {
		return nil, err
	}
	for i := range list.Items {
		if list.Items[i].Status.JobID == id {
			return &list.Items[i], nil
		}
	}
	return nil, nil
}
