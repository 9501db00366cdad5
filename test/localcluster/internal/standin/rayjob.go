package standin

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"slices"
	"sync"
	"time"

	"kube-queue.dev/kube-queue/test/localcluster/internal/kube"
)

// rayDashboard knows of jobs what the API server serves, and what it received
// itself. The latter goes with the head pod, as the memory of a real one does.
type rayDashboard struct {
	client *kube.Client
	// runTime is how long a job runs that does not say so itself.
	runTime time.Duration
	log     *log.Logger
	now     func() time.Time

	mu          sync.Mutex
	submissions map[rayJobKey]submission
}

// rayJobKey names a job on one life of a Ray cluster, that is, one head pod.
type rayJobKey struct{ head, id string }

// submission is what is remembered of a job.
type submission struct {
	entrypoint string
	// at and stopped are zero when it was not.
	at, stopped time.Time
	deleted     bool
}

func newRayDashboard(client *kube.Client, runTime time.Duration, log *log.Logger) *rayDashboard {
	return &rayDashboard{client: client, runTime: runTime, log: log, now: time.Now, submissions: map[rayJobKey]submission{}}
}

// remember changes what is remembered of a job, and returns it.
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

// rayJobState is a state of a job in Ray's words.
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

// rayTask is a job as a dashboard sees it.
type rayTask struct {
	rayJobKey
	submission
	runs     time.Duration
	exitCode int
	// What it was found from: the head pod, the RayJob, if one has it, and the
	// submitter's pods in K8sJobMode.
	head       *rayPod
	owner      *rayJob
	submitters []rayPod
}

// state is where the job is, and when it ended. It is PENDING as long as the
// submitter has not begun. A real dashboard has not heard of it by then; the
// operator takes the one for the other, but logs an error each time.
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

// find looks for a job on the dashboard at host. It is there if somebody submitted
// it there by HTTP, or if a RayJob has its ID whose submitter did, or is about to.
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
			task.submitters, err = d.pods(ctx, head.Metadata.Namespace, map[string]string{"batch.kubernetes.io/job-name": task.owner.Metadata.Name})
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
	if task.deleted || task.at.IsZero() && !waits {
		return nil, refuse(http.StatusNotFound, "Job %s does not exist", id)
	}
	return task, nil
}

// submitterBegan reports when the submitter handed in the job, or whether it is
// still to come. A submitter that is to fail hands in nothing, and what one handed
// in to an earlier head pod is lost.
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

// leadSubmitter makes the submitter follow its job: its program, which does not
// run, would read the job's log until that ends.
func (d *rayDashboard) leadSubmitter(ctx context.Context, task *rayTask, state rayJobState) error {
	if task.owner == nil {
		return nil
	}
	if name := task.head.submitter(task.id); name != "" && state.ended() {
		return d.endContainer(ctx, task.head, name, state)
	}
	runTime, given := task.owner.Metadata.Annotations[runTimeAnnotation]
	if _, own := task.owner.Spec.SubmitterPodTemplate.Metadata.Annotations[runTimeAnnotation]; own || !given {
		return nil
	}
	if runTime == "never" {
		// kwok puts off an end that it has planned already, but never calls it off.
		runTime = "87600h"
	}
	for _, pod := range task.submitters {
		if pod.submitter(task.id) == "" || pod.ended() || pod.Metadata.Annotations[runTimeAnnotation] == runTime {
			continue
		}
		patch := object{"metadata": object{"uid": pod.Metadata.UID, "annotations": object{runTimeAnnotation: runTime}}}
		if err := d.patch(ctx, pod.path(), "application/merge-patch+json", patch); err != nil && !kube.HasCode(err, http.StatusNotFound) {
			return err
		}
	}
	return nil
}

// endContainer ends the submitter in SidecarMode. Unlike the one in K8sJobMode it
// fails with its job. The operator has heard of the job's end by then, and shows
// from that why the submitter failed.
func (d *rayDashboard) endContainer(ctx context.Context, head *rayPod, name string, state rayJobState) error {
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
	return d.patch(ctx, head.path()+"/status", "application/strategic-merge-patch+json", object{
		"metadata": object{"uid": head.Metadata.UID, "resourceVersion": head.Metadata.ResourceVersion},
		"status":   object{"containerStatuses": head.Status.ContainerStatuses, "conditions": conditions},
	})
}
