package autoscaler

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	provisioningv1 "k8s.io/autoscaler/cluster-autoscaler/apis/provisioningrequest/autoscaling.x-k8s.io/v1"
)

// step is the next step of one request.
type step struct {
	*Autoscaler
	request *provisioningv1.ProvisioningRequest
	answer  Answer
	// nodes are the existing nodes of the request.
	nodes []*corev1.Node
	// ahead is the state of the earlier requests of each pool.
	ahead map[*Pool]turn
}

// turn is the state of the earlier requests of a pool. In the zero turn, all of them have their shares.
type turn int

const (
	// undecided: one will be decided at its next event.
	undecided turn = iota + 1
	// blocked: one waits for capacity.
	blocked
)

// take writes at most one condition.
func (s step) take(ctx context.Context) error {
	switch {
	case s.request.DeletionTimestamp != nil, s.answer.goal == ignored,
		is(s.request, provisioningv1.Failed), is(s.request, provisioningv1.CapacityRevoked):
		return nil
	case !is(s.request, provisioningv1.Accepted):
		s.queueUp(undecided)
		return s.set(ctx, provisioningv1.Accepted, metav1.ConditionTrue, ReasonAccepted, "the autoscaler has accepted the request")
	case is(s.request, provisioningv1.Provisioned):
		return s.end(ctx)
	}
	switch s.answer.goal {
	case waiting:
		return s.set(ctx, provisioningv1.Provisioned, metav1.ConditionFalse, s.answer.reason, s.answer.message)
	case failed:
		return s.set(ctx, provisioningv1.Failed, metav1.ConditionTrue, s.answer.reason, s.answer.message)
	case provisioned, expired, revoked:
		return s.provision(ctx)
	}
	return nil
}

// end takes the step after Provisioned=True.
func (s step) end(ctx context.Context) error {
	switch {
	case s.answer.goal == expired:
		return s.set(ctx, provisioningv1.BookingExpired, metav1.ConditionTrue, ReasonReservationTimeExpired, "the capacity is no longer booked")
	case s.answer.goal == revoked:
		return s.set(ctx, provisioningv1.CapacityRevoked, metav1.ConditionTrue, ReasonCapacityRevoked, s.answer.message)
	}
	return nil
}

// queueUp makes later requests of the pool wait for this one, if it has no share yet.
func (s step) queueUp(turn turn) {
	if _, holds := s.shares[s.request.UID]; s.answer.pool != nil && !holds {
		s.ahead[s.answer.pool] = max(s.ahead[s.answer.pool], turn)
	}
}

// provision adds nodes if the pool has room, and reports Provisioned=True when all can be used.
func (s step) provision(ctx context.Context) error {
	templates, err := s.podTemplates()
	if apierrors.IsNotFound(err) {
		s.queueUp(blocked)
		return nil // the event of the pod template wakes the loop
	}
	if err != nil {
		return err
	}
	wanted := plan(s.request, templates, s.answer.podsOnNode)
	if s.answer.pool != nil {
		if granted, err := s.grant(ctx, sum(wanted)); err != nil || !granted {
			return err
		}
	}
	if ready, err := s.addNodes(ctx, wanted); err != nil || !ready {
		return err
	}
	return s.set(ctx, provisioningv1.Provisioned, metav1.ConditionTrue, ReasonCapacityIsProvisioned, "the nodes are ready")
}

// grant gives the request its share of the pool. If it has to wait, grant writes that to the request.
func (s step) grant(ctx context.Context, amount corev1.ResourceList) (bool, error) {
	pool := s.answer.pool
	if _, holds := s.shares[s.request.UID]; holds {
		return true, nil
	}
	lacks := s.shares.lacking(pool, amount)
	switch {
	case s.ahead[pool] == undecided:
		return false, nil
	case s.ahead[pool] == blocked:
		lacks = "an earlier request waits for capacity"
	case lacks == "":
		s.shares[s.request.UID] = share{pool, amount}
		return true, nil
	}
	s.queueUp(blocked)
	return false, s.set(ctx, provisioningv1.Provisioned, metav1.ConditionFalse, ReasonNotProvisioned, lacks)
}

// addNodes creates the nodes that do not exist, and reports whether all can be used.
func (s step) addNodes(ctx context.Context, wanted []*corev1.Node) (bool, error) {
	existing := map[string]*corev1.Node{}
	for _, node := range s.nodes {
		existing[node.Name] = node
	}
	ready := true
	for _, node := range wanted {
		if known := existing[node.Name]; known != nil {
			ready = ready && usable(known)
			continue
		}
		ready = false
		// The informer may not have seen the node yet.
		if _, err := s.kube.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
			return false, fmt.Errorf("creating node %s: %w", node.Name, err)
		}
	}
	return ready, nil
}

// podTemplates returns the pod sets of the request with their pod templates.
func (s step) podTemplates() ([]template, error) {
	var all []template
	for _, set := range s.request.Spec.PodSets {
		object, err := s.templates.PodTemplates(s.request.Namespace).Get(set.PodTemplateRef.Name)
		if err != nil {
			return nil, fmt.Errorf("the pod template of request %s/%s: %w", s.request.Namespace, s.request.Name, err)
		}
		all = append(all, template{count: int(set.Count), spec: &object.Template.Spec})
	}
	return all, nil
}

func (s step) set(ctx context.Context, condition string, status metav1.ConditionStatus, reason, message string) error {
	return s.write(ctx, s.request, metav1.Condition{Type: condition, Status: status, Reason: reason, Message: message})
}
