package facts

import (
	"encoding/json"
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcehelper "k8s.io/component-helpers/resource"
)

// Pod describes a pod after a write.
type Pod struct {
	Owner    Owner
	Labelled string // the job in the label of a pod without a controller
	ByRow    *Row   // the row whose label names the job
	Over     bool   // it has ended
	Class    Class
	// Until is the end of the grace period of a pod that is being deleted, or zero.
	Until time.Time
	// Requests and Limits are read while the pod is new.
	Requests, Limits Amounts
}

func parsePod(kind string, m *meta, raw json.RawMessage) (any, error) {
	if kind != "Pod" {
		return nil, nil
	}
	var o corev1.Pod
	if err := json.Unmarshal(raw, &o); err != nil {
		return nil, err
	}
	p := &Pod{
		Owner: m.controller(), Over: o.Status.Phase == corev1.PodSucceeded || o.Status.Phase == corev1.PodFailed,
		Until: m.until(), Class: classOfPod(&o),
	}
	if p.Owner.UID == "" {
		for _, r := range rows {
			if r.podLabel != "" && m.Labels[r.podLabel] != "" {
				p.Labelled, p.ByRow = m.Labels[r.podLabel], r
			}
		}
	}
	// Requests are needed only when the pod is created. A pod in a create request has no phase yet.
	if phase := o.Status.Phase; (phase == corev1.PodPending || phase == "") && (o.Spec.NodeName == "" || o.Status.StartTime == nil) {
		setDefaults(o.Spec.Containers)
		setDefaults(o.Spec.InitContainers)
		p.Requests = ceil(resourcehelper.PodRequests(&o, resourcehelper.PodResourcesOptions{}))
		p.Limits = ceil(resourcehelper.PodLimits(&o, resourcehelper.PodResourcesOptions{}))
	}
	return p, nil
}

// setDefaults replaces missing requests by the limits, as the API server does. A pod in a create request lacks them.
func setDefaults(containers []corev1.Container) {
	for i := range containers {
		own := &containers[i].Resources
		requests := maps.Clone(own.Limits)
		if requests == nil {
			continue
		}
		maps.Copy(requests, own.Requests)
		own.Requests = requests
	}
}
