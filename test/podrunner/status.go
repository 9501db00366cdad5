package podrunner

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
)

// status is the status of a pod to report.
type status struct {
	restarts int32
	started  metav1.Time
	ready    bool
	// ended is how the program ended last. backingOff reports that it will be restarted.
	ended      *corev1.ContainerStateTerminated
	backingOff bool
}

// apiTimeout is how long the API server may be down, for example during an upgrade.
const apiTimeout = time.Minute

// retry repeats a request until it succeeds, as a kubelet does.
func retry(ctx context.Context, request func(context.Context) error) error {
	var last error
	err := wait.PollUntilContextTimeout(ctx, probeEvery, apiTimeout, true, func(ctx context.Context) (bool, error) {
		last = request(ctx)
		return last == nil, nil
	})
	if err != nil {
		return errors.Join(err, last)
	}
	return nil
}

// report writes the pod's status.
func (p *pod) report(ctx context.Context, s status) error {
	container := p.object.Spec.Containers[0]
	running := corev1.ContainerStatus{Name: container.Name, Image: container.Image, ImageID: container.Image,
		RestartCount: s.restarts, Ready: s.ready, Started: new(!s.backingOff)}
	phase := corev1.PodRunning
	switch {
	case s.ended != nil && !s.backingOff:
		running.State.Terminated = s.ended
		if phase = corev1.PodSucceeded; s.ended.ExitCode != 0 {
			phase = corev1.PodFailed
		}
	case s.backingOff:
		running.State.Waiting = &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff", Message: "the program has ended; see its log"}
		running.LastTerminationState.Terminated = s.ended
	default:
		running.State.Running = &corev1.ContainerStateRunning{StartedAt: s.started}
	}
	condition := corev1.ConditionFalse
	if s.ready {
		condition = corev1.ConditionTrue
	}
	now := metav1.Now()
	patch := map[string]any{"status": map[string]any{
		"phase": phase, "podIP": p.ip, "podIPs": []corev1.PodIP{{IP: p.ip}},
		"conditions": []map[string]any{
			{"type": corev1.PodInitialized, "status": corev1.ConditionTrue, "lastTransitionTime": now},
			{"type": corev1.ContainersReady, "status": condition, "lastTransitionTime": now},
			{"type": corev1.PodReady, "status": condition, "lastTransitionTime": now},
		},
		"containerStatuses": []corev1.ContainerStatus{running},
	}}
	text, err := json.Marshal(patch)
	if err != nil {
		return err
	}
	return retry(ctx, func(ctx context.Context) error {
		_, err := p.runner.client.CoreV1().Pods(p.object.Namespace).
			Patch(ctx, p.object.Name, types.StrategicMergePatchType, text, metav1.PatchOptions{}, "status")
		if apierrors.IsNotFound(err) { // the pod was deleted; its process is about to be stopped
			return nil
		}
		return err
	})
}
