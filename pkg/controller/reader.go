package controller

import (
	schedulingv1alpha1 "kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/pkg/controller/backend"
	"kube-queue.dev/kube-queue/pkg/quota"
	"kube-queue.dev/kube-queue/pkg/resources"
	"kube-queue.dev/kube-queue/pkg/scheduler"
)

// UnitReader returns a function that converts QueueUnits for a core with the quota of a tree, as the controller
// does. It is for programs that have the core decide about objects that they have read.
func UnitReader(names *resources.Names) func(*schedulingv1alpha1.QueueUnit) (scheduler.Unit, error) {
	r := unitReader{
		compactor: compactor{keep: func(_, _ *schedulingv1alpha1.QueueUnitSpec) {}},
		demand: func(unit *schedulingv1alpha1.QueueUnit) (quota.Demand, error) {
			return backend.Requests(names, unit)
		},
		kinds: &kinds{},
	}
	return func(unit *schedulingv1alpha1.QueueUnit) (scheduler.Unit, error) { return r.readComplete(unit) }
}

// QueueSettings returns the settings of a Queue for a core.
func QueueSettings(queue *schedulingv1alpha1.Queue) scheduler.QueueChanged {
	return queueSettings(queue)
}
