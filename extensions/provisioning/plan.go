package provisioning

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	"kube-queue.dev/kube-queue/extensions/framework"
	"kube-queue.dev/kube-queue/pkg/lifecycle"
	"kube-queue.dev/kube-queue/pkg/requests"
)

// Input has the data for computing a request.
type Input struct {
	Unit *v1alpha1.QueueUnit
	// Check is the name of the AdmissionCheck.
	Check string
	// ConfigName and Config are the config of the check.
	ConfigName string
	Config     *v1alpha1.ProvisioningRequestConfigSpec
	// Pods are the pod sets of the job, with complete templates.
	Pods []framework.PodSet
	// Cluster determines what the API server adds to pods.
	Cluster requests.Cluster
	// Failed is how many requests of the unit for the check have failed in a row.
	Failed int32
}

// Plan has the objects of one attempt.
type Plan struct {
	Templates []*corev1.PodTemplate
	Request   *Request
}

// Managed returns the pod sets of the unit that nodes are requested for, with the number of pods that were admitted.
func Managed(unit *v1alpha1.QueueUnit, config *v1alpha1.ProvisioningRequestConfigSpec) []v1alpha1.PodSet {
	return admitted(unit, func(set *v1alpha1.PodSet) bool { return set.Count > 0 && requestsManaged(set.Requests, config) })
}

// admitted returns the pod sets of the unit that wanted selects, with the number of pods that were admitted.
func admitted(unit *v1alpha1.QueueUnit, wanted func(*v1alpha1.PodSet) bool) []v1alpha1.PodSet {
	var sets []v1alpha1.PodSet
	for _, set := range unit.Spec.PodSets {
		set.Count = lifecycle.AdmittedPods(unit, &set)
		if wanted(&set) {
			sets = append(sets, set)
		}
	}
	return sets
}

// IsManaged reports whether nodes are requested for the unit. A unit that was created by hand can have a request and no
// pod sets.
func IsManaged(unit *v1alpha1.QueueUnit, config *v1alpha1.ProvisioningRequestConfigSpec) bool {
	if len(unit.Spec.PodSets) == 0 {
		return len(unit.Spec.Resource) > 0 && requestsManaged(unit.Spec.Resource, config)
	}
	return len(Managed(unit, config)) > 0
}

func requestsManaged(list corev1.ResourceList, config *v1alpha1.ProvisioningRequestConfigSpec) bool {
	return len(config.ManagedResources) == 0 || slices.ContainsFunc(config.ManagedResources, func(name corev1.ResourceName) bool {
		amount := list[name]
		return amount.Sign() > 0
	})
}

// group is one or more pod sets that need the same nodes.
type group struct {
	template *corev1.PodTemplateSpec
	content  string
	count    int64
	names    []string
}

// PlanOf returns the objects for the current attempt of the unit, which has managed pod sets. If
// none can be created, it returns the answer of the check instead.
func PlanOf(in Input) (*Plan, *Answer) {
	groups, refused := in.groupsOf(Managed(in.Unit, in.Config))
	if refused == nil {
		refused = in.refusedSize(groups)
	}
	if refused != nil {
		return nil, refused
	}
	parameters, err := parametersOf(in.Unit, in.Config)
	if err != nil {
		// The owner of the job can correct this without a change of the unit's spec.
		return nil, retry("%v", err)
	}
	name := RequestName(in.Unit, in.Check)
	plan := &Plan{
		Request: &Request{
			TypeMeta:   metav1.TypeMeta{APIVersion: RequestKind.GroupVersion().String(), Kind: RequestKind.Kind},
			ObjectMeta: in.meta(name),
			Spec:       RequestSpec{ProvisioningClassName: in.Config.ProvisioningClassName, Parameters: parameters},
		},
	}
	plan.Request.Annotations = map[string]string{
		wellknown.RequestedForAnnotation:   podSetsOf(in.Unit),
		wellknown.FailedRequestsAnnotation: strconv.Itoa(int(in.Failed)),
	}
	for _, g := range groups {
		template := &corev1.PodTemplate{
			TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "PodTemplate"},
			ObjectMeta: in.meta(templateName(name, g.content)), Template: *g.template,
		}
		plan.Templates = append(plan.Templates, template)
		plan.Request.Spec.PodSets = append(plan.Request.Spec.PodSets, RequestPodSet{
			PodTemplateRef: TemplateReference{Name: template.Name}, Count: int32(g.count),
		})
	}
	return plan, nil
}

// meta returns the metadata of an object that the unit owns.
func (in Input) meta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace: in.Unit.Namespace, Name: name,
		Labels: map[string]string{wellknown.UnitUIDLabel: string(in.Unit.UID), wellknown.CheckLabel: in.Check},
		OwnerReferences: []metav1.OwnerReference{{
			APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: "QueueUnit",
			Name: in.Unit.Name, UID: in.Unit.UID, Controller: new(true),
		}},
	}
}

// Changed returns the answer if the pods of the job need other nodes than those of the request, and
// nil if they need the same. The entry names the pod sets that the request was created for, because
// the config may have changed since.
func Changed(in Input, entry v1alpha1.AdmissionCheckState, request *Request) *Answer {
	groups, refused := in.groupsOf(admitted(in.Unit, func(set *v1alpha1.PodSet) bool {
		return slices.ContainsFunc(entry.PodSetUpdates, func(update v1alpha1.PodSetUpdate) bool { return update.Name == set.Name })
	}))
	if refused != nil {
		return refused
	}
	var needed []RequestPodSet
	for _, g := range groups {
		needed = append(needed, RequestPodSet{PodTemplateRef: TemplateReference{Name: templateName(request.Name, g.content)}, Count: int32(g.count)})
	}
	if slices.Equal(needed, request.Spec.PodSets) {
		return nil
	}
	return new(changed(request.Name))
}

// groupsOf merges the pod sets that need the same nodes.
func (in Input) groupsOf(sets []v1alpha1.PodSet) ([]group, *Answer) {
	var groups []group
	for _, set := range sets {
		template, refused := in.templateOf(set.Name)
		if refused != nil {
			return nil, refused
		}
		data, err := json.Marshal(template)
		if err != nil {
			return nil, retry("the template of pod set %q cannot be encoded: %v", set.Name, err)
		}
		at := slices.IndexFunc(groups, func(g group) bool { return g.content == string(data) })
		if at < 0 {
			at = len(groups)
			groups = append(groups, group{template: template, content: string(data)})
		}
		groups[at].count += int64(set.Count)
		groups[at].names = append(groups[at].names, set.Name)
	}
	return groups, nil
}

func (in Input) templateOf(name string) (*corev1.PodTemplateSpec, *Answer) {
	at := slices.IndexFunc(in.Pods, func(set framework.PodSet) bool { return set.Name == name })
	switch {
	case at < 0:
		return nil, retry("the %s has no pod set %q any more", in.Unit.Spec.ConsumerRef.Kind, name)
	case in.Pods[at].Template == nil || in.Pods[at].Declared != nil:
		return nil, reject("the request of pod set %q is declared as a sum, so its pods are unknown and no nodes can be requested for them;"+
			" queue a %s where no provisioning check applies", name, in.Unit.Spec.ConsumerRef.Kind)
	}
	cluster := in.Cluster
	if in.Pods[at].Created {
		cluster = requests.Complete(in.Pods[at].Template, cluster)
	}
	template, err := scheduled(in.Pods[at].Template, in.Unit.Namespace, cluster)
	if err != nil {
		return nil, retry("pod set %q: %v", name, err)
	}
	return template, nil
}

// refusedSize rejects sizes that autoscalers do not accept.
func (in Input) refusedSize(groups []group) *Answer {
	if most := int(ptr.Deref(in.Config.MaxPodSets, mostPodSets)); len(groups) > most {
		var names []string
		for _, g := range groups {
			names = append(names, strings.Join(g.names, "+"))
		}
		return reject("the job has %d different pod sets that need nodes (%s), but ProvisioningRequestConfig %q allows at most %d;"+
			" give the pod sets equal templates, or raise maxPodSets if the autoscaler accepts more", len(groups), strings.Join(names, ", "), in.ConfigName, most)
	}
	for _, g := range groups {
		if g.count > maxCount {
			return reject("the pod sets %s have %d pods, but a ProvisioningRequest may have at most %d of one template", strings.Join(g.names, ", "), g.count, maxCount)
		}
	}
	return nil
}

// maxCount is the largest number of pods of one template.
const maxCount = 1<<31 - 1

// updates returns the annotations that let the pods of the pod sets use the nodes of the request.
func updates(sets []v1alpha1.PodSet, request *Request) []v1alpha1.PodSetUpdate {
	var all []v1alpha1.PodSetUpdate
	for _, set := range sets {
		all = append(all, v1alpha1.PodSetUpdate{Name: set.Name, Annotations: map[string]string{
			wellknown.ConsumeRequestAnnotation:      request.Name,
			wellknown.RequestClassAnnotation:        request.Spec.ProvisioningClassName,
			wellknown.OlderConsumeRequestAnnotation: request.Name,
			wellknown.OlderRequestClassAnnotation:   request.Spec.ProvisioningClassName,
		}})
	}
	return all
}

// podSetsOf identifies the pods of a unit: the name, number and requests of its pod sets.
func podSetsOf(unit *v1alpha1.QueueUnit) string {
	var parts []string
	for _, set := range unit.Spec.PodSets {
		parts = append(parts, set.Name, strconv.Itoa(int(set.Count)))
		for _, name := range slices.Sorted(maps.Keys(set.Requests)) {
			amount := set.Requests[name]
			parts = append(parts, string(name), amount.String())
		}
	}
	return hash(parts...)
}

// retry and reject return answers without a request.
func retry(format string, args ...any) *Answer {
	return &Answer{State: v1alpha1.CheckRetry, Message: fmt.Sprintf(format, args...)}
}

func reject(format string, args ...any) *Answer {
	return &Answer{State: v1alpha1.CheckRejected, Message: fmt.Sprintf(format, args...)}
}
