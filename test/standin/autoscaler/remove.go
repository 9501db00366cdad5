package autoscaler

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	provisioningv1 "k8s.io/autoscaler/cluster-autoscaler/apis/provisioningrequest/autoscaling.x-k8s.io/v1"
)

// removeNodes removes nodes of requests that are gone, revoked or failed. The share of a request ends
// with its last node.
func (a *Autoscaler) removeNodes(ctx context.Context, requests []*provisioningv1.ProvisioningRequest, added map[types.UID][]*corev1.Node) error {
	live, revoked := map[types.UID]bool{}, map[types.UID]bool{}
	for _, request := range requests {
		live[request.UID] = !is(request, provisioningv1.CapacityRevoked) && !is(request, provisioningv1.Failed)
		revoked[request.UID] = is(request, provisioningv1.CapacityRevoked)
	}
	bound, err := a.bound()
	if err != nil {
		return err
	}
	var errs []error
	for uid, nodes := range added {
		for _, node := range nodes {
			if live[uid] || len(bound[node.Name]) > 0 && !revoked[uid] {
				continue
			}
			errs = append(errs, a.remove(ctx, node))
		}
	}
	errs = append(errs, a.removePods(ctx, bound))
	for uid := range a.shares {
		// A live request keeps its share without nodes: it gets the share before the nodes are created.
		if !live[uid] && len(added[uid]) == 0 {
			delete(a.shares, uid)
		}
	}
	return errors.Join(errs...)
}

// bound returns the pods on each node that have not ended.
func (a *Autoscaler) bound() (map[string][]*corev1.Pod, error) {
	pods, err := a.pods.List(labels.Everything())
	if err != nil {
		return nil, fmt.Errorf("listing pods: %w", err)
	}
	bound := map[string][]*corev1.Pod{}
	for _, pod := range pods {
		if pod.Spec.NodeName != "" && pod.Status.Phase != corev1.PodSucceeded && pod.Status.Phase != corev1.PodFailed {
			bound[pod.Spec.NodeName] = append(bound[pod.Spec.NodeName], pod)
		}
	}
	return bound, nil
}

// remove removes a node.
func (a *Autoscaler) remove(ctx context.Context, node *corev1.Node) error {
	a.gone[node.Name] = true
	err := a.kube.CoreV1().Nodes().Delete(ctx, node.Name, metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(node.UID))})
	if ignoreChanged(err) != nil {
		return fmt.Errorf("removing node %s: %w", node.Name, err)
	}
	return nil
}

// removePods fails and deletes the pods of removed nodes, as the garbage collection of pods does after
// 40 seconds.
func (a *Autoscaler) removePods(ctx context.Context, bound map[string][]*corev1.Pod) error {
	var errs []error
	for name := range a.gone {
		for _, pod := range bound[name] {
			if err := ignoreChanged(a.disrupt(ctx, pod)); err != nil {
				errs = append(errs, fmt.Errorf("removing pod %s/%s of node %s: %w", pod.Namespace, pod.Name, name, err))
			}
		}
	}
	return errors.Join(errs...)
}

func (a *Autoscaler) disrupt(ctx context.Context, pod *corev1.Pod) error {
	pod = pod.DeepCopy()
	pod.Status.Phase = corev1.PodFailed
	pod.Status.Conditions = append(slices.DeleteFunc(pod.Status.Conditions, isDisruption), corev1.PodCondition{
		Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: "DeletionByPodGC",
		Message: "the node is gone", LastTransitionTime: metav1.Now(),
	})
	pods := a.kube.CoreV1().Pods(pod.Namespace)
	if _, err := pods.UpdateStatus(ctx, pod, metav1.UpdateOptions{}); err != nil {
		return err
	}
	return pods.Delete(ctx, pod.Name, metav1.DeleteOptions{GracePeriodSeconds: new(int64(0)), Preconditions: metav1.NewUIDPreconditions(string(pod.UID))})
}

func isDisruption(condition corev1.PodCondition) bool {
	return condition.Type == corev1.DisruptionTarget
}
