package controller

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
)

func (c *Controller) unitChanged(obj any) {
	unit, isUnit := obj.(*v1alpha1.QueueUnit)
	if !isUnit {
		return
	}
	if _, exists, err := c.Units.GetIndexer().GetByKey(unit.Namespace + "/" + unit.Name); err == nil && !exists {
		c.memory.forget(unit.UID)
		return
	}
	if c.concerns(unit) {
		c.queue.Add(types.NamespacedName{Namespace: unit.Namespace, Name: unit.Name})
	}
}

// concerns reports whether the unit has checks, or something was created for it.
func (c *Controller) concerns(unit *v1alpha1.QueueUnit) bool {
	if len(unit.Status.AdmissionChecks) > 0 || c.memory.of(unit.UID).templates {
		return true
	}
	keys, err := c.requests.GetIndexer().IndexKeys(byUnit, string(unit.UID))
	return err == nil && len(keys) > 0
}

// checkChanged queues all units, because their entries may belong to this controller now.
func (c *Controller) checkChanged(obj any) {
	check, err := decode[v1alpha1.AdmissionCheck](obj)
	if err != nil || check.Spec.ControllerName != wellknown.ProvisioningController {
		return
	}
	c.api.need()
	c.queueAll()
}

func (c *Controller) requestChanged(obj any) {
	if request, is := obj.(metav1.Object); is && unitOf(request) != nil {
		c.queue.Add(types.NamespacedName{Namespace: request.GetNamespace(), Name: unitOf(request).Name})
	}
}

// queueAll queues the units that have checks. It is called when a check or its config changes, which
// is rare.
func (c *Controller) queueAll() {
	for _, obj := range c.Units.GetStore().List() {
		if unit, isUnit := obj.(*v1alpha1.QueueUnit); isUnit && c.concerns(unit) {
			c.queue.Add(types.NamespacedName{Namespace: unit.Namespace, Name: unit.Name})
		}
	}
}
