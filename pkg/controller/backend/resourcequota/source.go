// Package resourcequota feeds the quota backend "resourcequota" with the ResourceQuotas of the cluster.
package resourcequota

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	schedulingv1alpha1 "kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/pkg/controller/backend"
	"kube-queue.dev/kube-queue/pkg/controller/codec"
	"kube-queue.dev/kube-queue/pkg/controller/devicewatch"
	"kube-queue.dev/kube-queue/pkg/follow"
	"kube-queue.dev/kube-queue/pkg/quota"
	"kube-queue.dev/kube-queue/pkg/quota/resourcequota"
	"kube-queue.dev/kube-queue/pkg/requests"
	"kube-queue.dev/kube-queue/pkg/resources"
)

var _ backend.Source = (*Source)(nil)

// Source watches ResourceQuotas.
type Source struct {
	host    backend.Host
	backend *resourcequota.Backend
	// rules are the rules for counting devices. devices watches the devices of pods.
	rules   requests.Rules
	devices *devicewatch.Watch
	// decides is whether the core uses the backend.
	decides bool
}

// New returns a Source that counts the devices of these DeviceClasses. ResourceQuotas have no types of devices.
func New(classes map[string]corev1.ResourceName) *Source {
	rules := requests.Rules{Classes: classes}
	return &Source{rules: rules, devices: devicewatch.New(rules)}
}

// Start starts the watches.
func (s *Source) Start(ctx context.Context, host backend.Host) ([]cache.InformerSynced, error) {
	s.host, s.backend = host, resourcequota.New(host.Names)
	config := rest.CopyConfig(host.Config)
	config.ContentType = runtime.ContentTypeProtobuf
	config.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("watching ResourceQuotas: %w", err)
	}
	factory := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithTransform(slim))
	quotas := factory.Core().V1().ResourceQuotas().Informer()
	synced, err := follow.Objects(quotas, s.quotaSeen, s.quotaGone)
	if err != nil {
		return nil, fmt.Errorf("watching ResourceQuotas: %w", err)
	}
	s.devices.Renamed(func() { // the quotas count other devices
		for _, key := range quotas.GetStore().ListKeys() {
			host.Take(func() backend.Change {
				object, _, _ := quotas.GetStore().GetByKey(key)
				if seen, is := object.(*corev1.ResourceQuota); is {
					return s.see(seen)
				}
				return backend.Change{}
			})
		}
	})
	factory.StartWithContext(ctx)
	return []cache.InformerSynced{synced}, nil
}

// Listed makes the core use the backend after all objects were listed.
func (s *Source) Listed() backend.Change {
	s.decides = true
	return backend.Change{Quota: &backend.Quota{Backend: s.backend}}
}

// Keep copies the pod sets.
func (s *Source) Keep(unit, kept *schedulingv1alpha1.QueueUnitSpec) { kept.PodSets = unit.PodSets }

// Demand returns what the pods of the unit use of ResourceQuotas. For a unit without pod sets, it uses
// spec.resource.
func (s *Source) Demand(unit *schedulingv1alpha1.QueueUnit) (quota.Demand, error) {
	return demandIn(s.host.Names, s.backend, unit)
}

// DemandIn returns a Demand for a copy.
func (*Source) DemandIn(names *resources.Names, copied quota.Explainer) func(*schedulingv1alpha1.QueueUnit) (quota.Demand, error) {
	backend := copied.(*resourcequota.Backend)
	return func(unit *schedulingv1alpha1.QueueUnit) (quota.Demand, error) { return demandIn(names, backend, unit) }
}

func demandIn(names *resources.Names, backend *resourcequota.Backend, unit *schedulingv1alpha1.QueueUnit) (quota.Demand, error) {
	demand, err := codec.Requests(names, unit)
	if err != nil {
		return demand, err
	}
	jobs := names.ID(quota.JobsResource)
	var uses []resourcequota.Use
	var faults []error
	for _, pods := range podsOf(&unit.Spec) {
		use, err := resourcequota.Weigh(pods)
		if err != nil {
			faults = append(faults, fmt.Errorf("%q: %w", pods.Name, err))
		}
		uses = append(uses, use)
	}
	vector, err := backend.Vector(uses...)
	if _, counts := demand.Requests.Get(jobs); counts {
		vector = vector.With(jobs, 1)
	}
	demand.Requests = vector
	if err := errors.Join(append(faults, err)...); err != nil {
		return demand, fmt.Errorf("spec.podSets of the QueueUnit: %w", err)
	}
	return demand, nil
}

func podsOf(unit *schedulingv1alpha1.QueueUnitSpec) []resourcequota.Pods {
	if len(unit.PodSets) == 0 {
		return []resourcequota.Pods{{Count: 1, Requests: unit.Resource}}
	}
	pods := make([]resourcequota.Pods, 0, len(unit.PodSets))
	for _, set := range unit.PodSets {
		pods = append(pods, resourcequota.Pods{
			Class: resourcequota.ClassOf(set.QuotaScopes, set.PriorityClassName),
			Name:  set.Name, Count: int64(set.Count), Requests: set.Requests, Limits: set.Limits, Unset: set.Unset,
		})
	}
	return pods
}

// observe passes an observation to the backend, through the core once the core uses it.
func (s *Source) observe(seen any) backend.Change {
	if s.decides {
		return backend.Change{Seen: seen}
	}
	s.backend.Observe(seen)
	return backend.Change{}
}

func (s *Source) quotaSeen(seen *corev1.ResourceQuota) {
	s.host.Take(func() backend.Change { return s.see(seen) })
}

func (s *Source) see(seen *corev1.ResourceQuota) backend.Change {
	return s.observe(resourcequota.QuotaSeen{Quota: seen, Keys: s.keysOf(seen)})
}

// keysOf maps each key of the quota that counts devices to the key under which they count here.
func (s *Source) keysOf(seen *corev1.ResourceQuota) map[string]string {
	keys, rules := map[string]string{}, s.devices.Rules()
	for _, hard := range []corev1.ResourceList{seen.Spec.Hard, seen.Status.Hard} {
		for key := range hard {
			if counted := rules.QuotaKey(string(key)); counted != string(key) {
				keys[string(key)] = counted
			}
		}
	}
	return keys
}

func (s *Source) quotaGone(last *corev1.ResourceQuota) {
	s.host.Take(func() backend.Change {
		return s.observe(resourcequota.QuotaGone{Namespace: last.Namespace, Name: last.Name})
	})
}

// slim removes the parts of a ResourceQuota that are not used here.
func slim(object any) (any, error) {
	if o, is := object.(*corev1.ResourceQuota); is {
		o.ManagedFields, o.Annotations, o.Labels = nil, nil, nil
	}
	return object, nil
}
