package standin

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"kube-queue.dev/kube-queue/test/localcluster/internal/kube"
)

// rayDashboard reads jobs from the API server, and stores the jobs that it received itself. Those are lost with the
// head pod, as in a real dashboard.
type rayDashboard struct {
	client *kube.Client
	// runTime is the run time of jobs without an annotation.
	runTime time.Duration
	log     *log.Logger
	now     func() time.Time

	mu          sync.Mutex
	submissions map[rayJobKey]submission
}

// rayJobKey identifies a job on one head pod of a Ray cluster.
type rayJobKey struct{ head, id string }

// submission is the stored state of a job.
type submission struct {
	entrypoint string
	// at and stopped are zero if the job was not submitted or stopped.
	at, stopped time.Time
}

func newRayDashboard(client *kube.Client, runTime time.Duration, log *log.Logger) *rayDashboard {
	return &rayDashboard{client: client, runTime: runTime, log: log, now: time.Now, submissions: map[rayJobKey]submission{}}
}

// remember changes the stored state of a job, and returns it.
func (d *rayDashboard) remember(key rayJobKey, change func(*submission)) submission {
	d.mu.Lock()
	defer d.mu.Unlock()
	known := d.submissions[key]
	change(&known)
	if known != (submission{}) {
		d.submissions[key] = known
	}
	return known
}

// rayJobState is a state of a job in Ray's API.
type rayJobState string

const (
	rayPending   rayJobState = "PENDING"
	rayRunning   rayJobState = "RUNNING"
	rayStopped   rayJobState = "STOPPED"
	raySucceeded rayJobState = "SUCCEEDED"
	rayFailed    rayJobState = "FAILED"
)

func (s rayJobState) ended() bool { return s != rayPending && s != rayRunning }

func (s rayJobState) message() string {
	switch s {
	case rayPending:
		return "The job waits for its submitter."
	case rayRunning:
		return "The job runs."
	case rayStopped:
		return "The job was stopped."
	case rayFailed:
		return "The job's entrypoint failed, as its annotation wants it."
	default:
		return "The job finished."
	}
}

// rayTask is a job on a dashboard.
type rayTask struct {
	rayJobKey
	submission
	runs     time.Duration
	exitCode int
	// The head pod, the RayJob, if any, and the submitter's pods in K8sJobMode.
	head       *pod
	owner      *rayJob
	submitters []pod
}

// state returns the state of the job, and when it ended. It is PENDING until the submitter has
// started. A real dashboard does not know the job until then. The operator handles both in the same
// way, but logs an error in the latter case.
func (t *rayTask) state(now time.Time) (state rayJobState, ended time.Time) {
	end := t.at.Add(t.runs)
	switch {
	case !t.stopped.IsZero():
		return rayStopped, t.stopped
	case t.at.IsZero():
		return rayPending, time.Time{}
	case now.Before(end):
		return rayRunning, time.Time{}
	case t.exitCode != 0:
		return rayFailed, end
	default:
		return raySucceeded, end
	}
}

// find returns a job on the dashboard at host. The job exists if it was submitted by HTTP, or if a
// RayJob with its ID has a submitter.
func (d *rayDashboard) find(ctx context.Context, host, id string) (*rayTask, error) {
	head, err := d.head(ctx, host)
	if err != nil {
		return nil, err
	}
	task := &rayTask{rayJobKey: rayJobKey{head.Metadata.UID, id}, head: head, runs: d.runTime}
	task.owner, err = d.rayJob(ctx, head.Metadata.Namespace, id)
	if err != nil {
		return nil, err
	}
	var begun time.Time
	waits := false
	if task.owner != nil {
		if task.owner.Spec.SubmissionMode == k8sJobMode {
			task.submitters, err = listPods(ctx, d.client, head.Metadata.Namespace, map[string]string{"batch.kubernetes.io/job-name": task.owner.Metadata.Name})
			if err != nil {
				return nil, err
			}
		}
		begun, waits = task.submitterBegan()
		task.runs, task.exitCode = task.owner.runTime(d.runTime), task.owner.Metadata.exitCode()
	}
	task.submission = d.remember(task.rayJobKey, func(known *submission) {
		if known.at.IsZero() && !begun.IsZero() {
			known.at, known.entrypoint = begun, task.owner.Spec.Entrypoint
		}
	})
	if task.at.IsZero() && !waits {
		return nil, refuse(http.StatusNotFound, "Job %s does not exist", id)
	}
	return task, nil
}

// submitterBegan returns when the submitter submitted the job, or whether it will do so later. A
// submitter that will fail submits nothing, and a job submitted to an earlier head pod is lost.
func (t *rayTask) submitterBegan() (begun time.Time, waits bool) {
	born, _ := t.head.started()
	switch t.owner.Spec.SubmissionMode {
	case sidecarMode:
		if t.head.submitter(t.id) == "" {
			return time.Time{}, false
		}
		return born, false
	case k8sJobMode:
		waits = true
		for _, pod := range t.submitters {
			started, hasStarted := pod.started()
			if pod.submitter(t.id) == "" || !hasStarted {
				continue
			}
			waits = false
			if pod.Metadata.exitCode() == 0 && !started.Before(born) && (begun.IsZero() || started.Before(begun)) {
				begun = started
			}
		}
	}
	return begun, waits
}

// leadSubmitter ends the submitter with its job. The real submitter would read the job's log until the job ends.
func (d *rayDashboard) leadSubmitter(ctx context.Context, task *rayTask, state rayJobState) error {
	if task.owner == nil {
		return nil
	}
	if name := task.head.submitter(task.id); name != "" && state.ended() {
		return d.endContainer(ctx, task.head, name, state)
	}
	if _, own := task.owner.Spec.SubmitterPodTemplate.Metadata.Annotations[runTimeAnnotation]; own {
		return nil
	}
	runTime, given := task.owner.Metadata.Annotations[runTimeAnnotation]
	switch {
	case !given:
		runTime = d.runTime.String()
	case runTime == "never":
		// kwok can delay a scheduled end, but not cancel it.
		runTime = "87600h"
	}
	for _, pod := range task.submitters {
		if pod.submitter(task.id) == "" || pod.ended() || pod.Metadata.Annotations[runTimeAnnotation] == runTime {
			continue
		}
		patch := object{"metadata": object{"uid": pod.Metadata.UID, "annotations": object{runTimeAnnotation: runTime}}}
		if err := d.client.Patch(ctx, pod.path(), types.MergePatchType, patch); err != nil && !apierrors.IsNotFound(err) {
			return err
		}
	}
	return nil
}

// endContainer ends the submitter in SidecarMode. Unlike in K8sJobMode, it fails with its job. By then, the operator
// has seen the end of the job, and uses it as the reason of the failure.
func (d *rayDashboard) endContainer(ctx context.Context, head *pod, name string, state rayJobState) error {
	index := slices.IndexFunc(head.Status.ContainerStatuses, func(c object) bool { return c["name"] == name })
	if index < 0 {
		return fmt.Errorf("pod %s has no status of container %s yet", head.Metadata.Name, name)
	}
	container := head.Status.ContainerStatuses[index]
	before, _ := container["state"].(object)
	running, isRunning := before["running"].(object)
	if !isRunning {
		return nil
	}
	now := d.now().UTC().Format(time.RFC3339)
	terminated := object{"exitCode": 0, "reason": "Completed", "startedAt": running["startedAt"], "finishedAt": now}
	if state == rayFailed {
		terminated["exitCode"], terminated["reason"] = 1, "Error"
	}
	container["ready"], container["started"], container["state"] = false, false, object{"terminated": terminated}
	var conditions []object
	for _, kind := range []string{"ContainersReady", "Ready"} {
		conditions = append(conditions, object{
			"type": kind, "status": "False", "reason": "ContainersNotReady",
			"message": "containers with unready status: [" + name + "]", "lastTransitionTime": now,
		})
	}
	return d.client.Patch(ctx, head.path()+"/status", types.StrategicMergePatchType, object{
		"metadata": object{"uid": head.Metadata.UID, "resourceVersion": head.Metadata.ResourceVersion},
		"status":   object{"containerStatuses": head.Status.ContainerStatuses, "conditions": conditions},
	})
}
