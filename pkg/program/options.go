package program

import (
	"errors"
	"fmt"
	"math"

	"kube-queue.dev/kube-queue/pkg/program/lease"
	"kube-queue.dev/kube-queue/pkg/program/logs"
	"kube-queue.dev/kube-queue/pkg/program/serving"
	"kube-queue.dev/kube-queue/pkg/program/settings"
)

// options are the settings that every program has.
type options struct {
	kubeconfig string
	qps        float32
	burst      int
	lease      lease.Options
	namespace  string
	features   *settings.Features
	serving    serving.Options
	logs       logs.Options
}

func defaultOptions() *options {
	return &options{
		qps:       500,
		burst:     1000,
		lease:     lease.DefaultOptions(),
		namespace: "kube-queue",
		serving:   serving.DefaultOptions(),
		logs:      logs.NewOptions(),
	}
}

// declare adds the settings to the set, group by group. To add a group, add a call to Group. For checks across its
// settings, add a line to validate.
func (o *options) declare(set *settings.Set, anonymous bool) {
	if anonymous {
		o.serving.DeclareHealth(set)
		o.features.Declare(set)
		o.logs.Declare(set)
		return
	}
	set.Group("General", settings.Setting{Var: &o.namespace, Flag: "namespace", Field: "namespace", Check: o.checkNamespace,
		Help: "Namespace of the lease and of the program's own objects."})
	set.Group("API server",
		settings.Setting{Var: &o.kubeconfig, Flag: "kubeconfig", Field: "clientConnection.kubeconfig",
			Help: "Path of a kubeconfig file. If unset: the service account of the pod or, outside of a pod, the default kubeconfig."},
		settings.Setting{Var: &o.qps, Flag: "kube-api-qps", Field: "clientConnection.qps", Check: o.checkQPS,
			Help: "Maximum sustained rate of requests to the API server, per second. Lease renewals and permission checks for readers of metrics and callers of reviews do not count."},
		settings.Setting{Var: &o.burst, Flag: "kube-api-burst", Field: "clientConnection.burst", Check: settings.Above0(&o.burst),
			Help: "Maximum burst of requests to the API server."})
	o.lease.Declare(set)
	o.serving.Declare(set)
	o.features.Declare(set)
	o.logs.Declare(set)
	for _, name := range [...]string{"PAI_ENV", "TestENV", "SmallTaskAcclerate"} {
		set.PassOver(name, "an internal switch of older releases that no longer exists")
	}
}

func (o *options) checkNamespace() error {
	if o.namespace == "" {
		return errors.New("must not be empty")
	}
	return nil
}

func (o *options) checkQPS() error {
	if o.qps <= 0 || math.IsNaN(float64(o.qps)) || math.IsInf(float64(o.qps), 0) {
		return fmt.Errorf("must be a number greater than 0, not %v", o.qps)
	}
	return nil
}

// validate checks settings that depend on each other. The logging settings are checked when
// they are applied.
func (o *options) validate() error {
	return errors.Join(o.lease.Validate(), o.serving.Validate())
}
