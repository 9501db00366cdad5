package autoscaler

import (
	"fmt"
	"maps"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	provisioningv1 "k8s.io/autoscaler/cluster-autoscaler/apis/provisioningrequest/autoscaling.x-k8s.io/v1"
	helpers "k8s.io/component-helpers/resource"
)

// Label is the label of added nodes. Its value is the UID of the request.
const Label = "localcluster.kube-queue.dev/provisioning-request"

// maxNodePods is how many pods a node may have in addition to those of its request.
const maxNodePods = 100

// template is a pod set of a request with its pod template.
type template struct {
	count int
	spec  *corev1.PodSpec
}

// group is a number of pods with the same node selector.
type group struct {
	selector map[string]string
	pods     int
	// largest has the largest request of one pod for each resource.
	largest corev1.ResourceList
}

// grouped returns the groups of pods in the order of the first pod set of each.
func grouped(templates []template) []*group {
	var all []*group
	for _, t := range templates {
		var g *group
		for _, known := range all {
			if maps.Equal(known.selector, t.spec.NodeSelector) {
				g = known
			}
		}
		if g == nil {
			g = &group{selector: t.spec.NodeSelector, largest: corev1.ResourceList{}}
			all = append(all, g)
		}
		g.pods += t.count
		for name, amount := range helpers.PodRequests(&corev1.Pod{Spec: *t.spec}, helpers.PodResourcesOptions{}) {
			if largest, known := g.largest[name]; !known || amount.Cmp(largest) > 0 {
				g.largest[name] = amount
			}
		}
	}
	return all
}

// plan returns the nodes for the pods of a request. Each node has room for podsOnNode pods of the largest size of its
// group. So every pod finds a node, in any order of scheduling.
func plan(request *provisioningv1.ProvisioningRequest, templates []template, podsOnNode int) []*corev1.Node {
	var nodes []*corev1.Node
	for _, g := range grouped(templates) {
		capacity := corev1.ResourceList{}
		for range podsOnNode {
			add(capacity, g.largest)
		}
		capacity[corev1.ResourcePods] = *resource.NewQuantity(int64(podsOnNode+maxNodePods), resource.DecimalSI)
		for range (g.pods + podsOnNode - 1) / podsOnNode {
			nodes = append(nodes, newNode(request, len(nodes), g.selector, capacity))
		}
	}
	return nodes
}

func newNode(request *provisioningv1.ProvisioningRequest, number int, selector map[string]string, capacity corev1.ResourceList) *corev1.Node {
	name := nodeName(request, number)
	labels := map[string]string{
		corev1.LabelArchStable: "amd64",
		corev1.LabelOSStable:   "linux",
	}
	maps.Copy(labels, selector)
	labels[corev1.LabelHostname] = name
	labels[Label] = string(request.UID)
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels},
		Status: corev1.NodeStatus{
			Capacity:    capacity,
			Allocatable: capacity.DeepCopy(),
			Addresses:   []corev1.NodeAddress{{Type: corev1.NodeHostName, Address: name}},
			NodeInfo: corev1.NodeSystemInfo{
				Architecture: "amd64", OperatingSystem: "linux", MachineID: name, SystemUUID: name,
				ContainerRuntimeVersion: "simulated", KernelVersion: "simulated", OSImage: "simulated",
			},
		},
	}
}

// nodeName is a valid value of a label: at most 63 characters. The start of the UID distinguishes
// requests of the same name.
func nodeName(request *provisioningv1.ProvisioningRequest, number int) string {
	const ofName, ofUID = 45, 8
	return fmt.Sprintf("%s-%s-%d", strings.TrimRight(first(request.Name, ofName), "-."), first(string(request.UID), ofUID), number)
}

func first(text string, n int) string { return text[:min(n, len(text))] }

// usable reports whether the scheduler places pods on the node.
func usable(node *corev1.Node) bool {
	if node.DeletionTimestamp != nil || node.Spec.Unschedulable || len(node.Spec.Taints) > 0 {
		return false
	}
	for _, condition := range node.Status.Conditions {
		if condition.Type == corev1.NodeReady {
			return condition.Status == corev1.ConditionTrue
		}
	}
	return false
}

// requestOf returns the UID of the request that the node was added for.
func requestOf(node *corev1.Node) types.UID { return types.UID(node.Labels[Label]) }

// sum returns the capacity of all nodes.
func sum(nodes []*corev1.Node) corev1.ResourceList {
	total := corev1.ResourceList{}
	for _, node := range nodes {
		add(total, node.Status.Allocatable)
	}
	return total
}
