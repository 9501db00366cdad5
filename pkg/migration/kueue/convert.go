package kueue

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"kube-queue.dev/kube-queue/pkg/migration"
)

// Group is the API group of Kueue.
const Group = "kueue.x-k8s.io"

const prefix = Group + "/"

// versions are the supported versions of Group.
var versions = []string{"v1beta1", "v1beta2"}

// onlyReported are kinds whose content is not read, so any version is accepted. Older versions of Kueue serve some of
// them only in v1alpha1.
var onlyReported = []string{"Topology", "MultiKueueConfig", "MultiKueueCluster"}

// Is reports whether the object belongs to Kueue, or is a job that Kueue manages.
func Is(object *unstructured.Unstructured) bool {
	return object.GroupVersionKind().Group == Group || object.GroupVersionKind().Group == configGroup || isJob(object)
}

// Convert converts the documents. It skips objects that do not come from Kueue or its users, except Namespaces: their
// labels decide which ClusterQueues their jobs may use. The error is a *migration.InputError.
func Convert(documents []migration.Document) (*migration.Result, error) {
	c := &converter{
		result: &migration.Result{},
		nodes:  map[string]*node{}, cohorts: map[string]*node{}, cohortSpecs: map[string]decoded[cohort]{},
		flavors: map[string]bool{}, classes: map[string]class{}, podClasses: map[string]int32{},
		checks: map[string]string{}, namespaces: map[string]map[string]string{}, localQueues: map[string]*node{},
		listed: map[*node]map[string][]string{}, seen: map[string]bool{},
	}
	c.read(documents)
	c.connect()
	if err := c.faults.Error(); err != nil {
		return nil, err
	}
	c.buildTree()
	c.convertAll()
	if err := c.faults.Error(); err != nil {
		return nil, err
	}
	c.result.SortFindings()
	return c.result, nil
}

// decoded is a document with its fields.
type decoded[T any] struct {
	migration.Document
	spec *T
}

type class struct {
	value       int32
	description string
	// asAnnotation is true if jobs get the value as an annotation, because no PriorityClass can have it.
	asAnnotation bool
}

type converter struct {
	result *migration.Result
	faults migration.Faults

	// queues are the ClusterQueues by name.
	queues []decoded[clusterQueue]
	// nodes are by the name of the ClusterQueue, and cohorts by the name of the Cohort.
	nodes, cohorts map[string]*node
	cohortSpecs    map[string]decoded[cohort]
	roots          []*node
	rootName       string

	flavors map[string]bool
	classes map[string]class
	// podClasses are the values of the PriorityClasses in the input.
	podClasses map[string]int32
	// checks are the controllers of the AdmissionChecks.
	checks map[string]string
	// namespaces are the labels of the namespaces in the input.
	namespaces map[string]map[string]string
	// localQueues are the nodes by namespace and name of the LocalQueue.
	localQueues map[string]*node
	// listed are the names of the LocalQueues of each namespace that a node lists.
	listed map[*node]map[string][]string
	// seen are the objects that were read.
	seen map[string]bool
	// waits is the time that pods may take to become ready, for all queues; empty for no limit.
	waits          string
	waitsBlock     bool
	before, behind []*unstructured.Unstructured
	workloads      int
	liveJobs       int
	// pods is true if plain pods are queued.
	pods           bool
	locals         []decoded[localQueue]
	configurations []migration.Document
	jobs           []migration.Document
}

// read reads all documents and converts those that do not depend on others.
func (c *converter) read(documents []migration.Document) {
	for _, d := range migration.Sorted(documents) {
		gvk := d.Object.GroupVersionKind()
		if gvk.Group != Group {
			c.readOther(d)
			continue
		}
		if !slices.Contains(versions, gvk.Version) && !slices.Contains(onlyReported, gvk.Kind) {
			c.faults.Add(d, "the version %s is not supported; export the object as %s%s", d.Object.GetAPIVersion(), prefix, strings.Join(versions, " or "+prefix))
			continue
		}
		if name := d.Name(); c.seen[name] {
			c.faults.Add(d, "the object is in the input twice; remove one")
			continue
		} else {
			c.seen[name] = true
		}
		switch gvk.Kind {
		case "ClusterQueue":
			if spec, is := decode[clusterQueue](c, d); is {
				c.queues = append(c.queues, decoded[clusterQueue]{d, spec})
			}
		case "Cohort":
			if spec, is := decode[cohort](c, d); is {
				c.cohortSpecs[d.Object.GetName()] = decoded[cohort]{d, spec}
			}
		case "LocalQueue":
			if spec, is := decode[localQueue](c, d); is {
				c.locals = append(c.locals, decoded[localQueue]{d, spec})
			}
		case "ResourceFlavor":
			if spec, is := decode[resourceFlavor](c, d); is {
				c.readFlavor(d, spec)
			}
		case "WorkloadPriorityClass":
			if spec, is := decode[workloadPriorityClass](c, d); is {
				c.classes[d.Object.GetName()] = class{value: spec.Value, description: spec.Description}
			}
		case "AdmissionCheck":
			if spec, is := decode[admissionCheck](c, d); is {
				c.readCheck(d, spec)
			}
		case "ProvisioningRequestConfig":
			if spec, is := decode[provisioningRequestConfig](c, d); is {
				c.readConfig(d, spec)
			}
		case "Topology":
			c.result.Find(d.Name(), "spec", "kube-queue does not place pods, and knows no topology",
				"use the topology features of the scheduler, or pod affinity in the templates of the jobs")
		case "MultiKueueConfig", "MultiKueueCluster":
			c.result.Find(d.Name(), "spec", "kube-queue queues the jobs of its own cluster only", "install kube-queue in each cluster, and submit jobs there")
		case "Workload":
			c.workloads++
		default:
			c.faults.Add(d, "the kind is unknown; remove the object from the input")
		}
	}
}

// readOther reads an object of another group.
func (c *converter) readOther(d migration.Document) {
	gvk := d.Object.GroupVersionKind()
	switch {
	case gvk.Group == "" && gvk.Kind == "Namespace":
		labels := map[string]string{"kubernetes.io/metadata.name": d.Object.GetName()}
		maps.Copy(labels, d.Object.GetLabels())
		c.namespaces[d.Object.GetName()] = labels
	case gvk.Group == "scheduling.k8s.io" && gvk.Kind == "PriorityClass":
		value, _, _ := unstructured.NestedInt64(d.Object.Object, "value")
		c.podClasses[d.Object.GetName()] = int32(value)
	case gvk.Group == configGroup || gvk.Group == "" && gvk.Kind == "ConfigMap":
		c.configurations = append(c.configurations, d)
	case isJob(d.Object):
		c.jobs = append(c.jobs, d)
	case d.Object.GetUID() == "" && migration.HasKey(d.Object, func(key string) bool { return strings.HasPrefix(key, prefix) }):
		c.result.Find(d.Name(), "metadata", "the object has keys of Kueue, but not the label "+queueLabel+", so it is not converted",
			"set the label to its LocalQueue, which is "+defaultQueue+" if Kueue chooses it, and convert the object again")
	}
}

// decode reads a document of a known kind. Fields that are not converted become findings.
func decode[T any](c *converter, d migration.Document) (*T, bool) {
	into := new(T)
	unknown, err := migration.Decode(d, into)
	if err != nil {
		c.faults.Add(d, "cannot read the object: %v", err)
		return nil, false
	}
	if d.Object.GetName() == "" {
		c.faults.Add(d, "the object has no name; set metadata.name")
		return nil, false
	}
	for _, field := range unknown {
		c.result.Find(d.Name(), field, "the field is unknown and is not converted", "correct its name, or remove it")
	}
	return into, true
}

// connect builds the nodes of ClusterQueues and Cohorts.
func (c *converter) connect() {
	for _, name := range slices.Sorted(maps.Keys(c.cohortSpecs)) {
		c.cohort(name)
	}
	for _, q := range c.queues {
		spec := q.spec.Spec
		n := &node{object: q.Name(), queue: q.spec}
		n.own = c.quotasOf(q.Document, spec.quotaSpec)
		if parent := cmp.Or(spec.CohortName, spec.Cohort); parent != "" {
			n.parent = c.cohort(parent)
			n.parent.children = append(n.parent.children, n)
		} else {
			c.roots = append(c.roots, n)
		}
		c.nodes[q.Object.GetName()] = n
	}
	for _, name := range slices.Sorted(maps.Keys(c.cohorts)) {
		if n := c.cohorts[name]; n.parent == nil {
			c.roots = append(c.roots, n)
		} else if circle := circleOf(n); circle {
			c.faults.Add(c.cohortSpecs[name].Document, "the Cohort is its own ancestor; change spec.parentName")
		}
	}
}

// circleOf reports whether a node is its own ancestor.
func circleOf(n *node) bool {
	seen := map[*node]bool{}
	for at := n.parent; at != nil && !seen[at]; at = at.parent {
		if at == n {
			return true
		}
		seen[at] = true
	}
	return false
}

// cohort returns the node of a Cohort. A Cohort without an object has no quota of its own and no parent, as in Kueue.
func (c *converter) cohort(name string) *node {
	if n := c.cohorts[name]; n != nil {
		return n
	}
	n := &node{object: "Cohort " + name}
	c.cohorts[name] = n
	if d, has := c.cohortSpecs[name]; has {
		n.own = c.quotasOf(d.Document, d.spec.Spec.quotaSpec)
		if parent := d.spec.Spec.ParentName; parent != "" {
			n.parent = c.cohort(parent)
			n.parent.children = append(n.parent.children, n)
		}
		c.findWeight(d.Name(), d.spec.Spec.FairSharing)
	}
	return n
}

// podsResource is the number of pods, which Kueue counts for each job.
const podsResource = "pods"

// quotasOf reads the quotas of an object, and reports those that are not converted.
func (c *converter) quotasOf(d migration.Document, spec quotaSpec) map[pair]quotas {
	own := readQuotas(d, spec, &c.faults)
	for _, p := range slices.SortedFunc(maps.Keys(own), comparePairs) {
		if p.resource == podsResource {
			c.result.Find(d.Name(), fmt.Sprintf("spec.resourceGroups: flavor %s: pods", p.flavor), "a quota tree does not count pods",
				"limit the number of jobs with kube-queue/max-jobs in the max of the node, or the pods of a namespace with a ResourceQuota")
			delete(own, p)
		}
		if c.flavors[p.flavor] {
			continue
		}
		c.flavors[p.flavor] = true
		if !c.seen["ResourceFlavor "+p.flavor] {
			c.result.Find(d.Name(), fmt.Sprintf("spec.resourceGroups: flavor %s", p.flavor),
				"the input has no ResourceFlavor of this name, so what it sets for pods is not listed, and Kueue would not use the queue",
				"add the ResourceFlavor to the input, or check by hand what its jobs need")
		}
	}
	return own
}

// hasWeight reports whether a weight other than the default is set.
func (f *fairSharing) hasWeight() bool {
	return f != nil && f.Weight != nil && !slices.Contains([]migration.Text{"1", "1.0", "1000m"}, *f.Weight)
}

func (c *converter) findWeight(object string, sharing *fairSharing) {
	if !sharing.hasWeight() {
		return
	}
	c.result.Find(object, "spec.fairSharing.weight", "branches share by what they are guaranteed, and there are no weights",
		"give the branch a greater min, or its queues a greater spec.priority")
}

// readFlavor reports what a flavor sets on pods.
func (c *converter) readFlavor(d migration.Document, spec *resourceFlavor) {
	const why = "kube-queue does not choose nodes, and adds nothing to pods"
	if len(spec.Spec.NodeLabels) > 0 {
		var labels []string
		for _, key := range slices.Sorted(maps.Keys(spec.Spec.NodeLabels)) {
			labels = append(labels, key+": "+spec.Spec.NodeLabels[key])
		}
		c.result.Find(d.Name(), "spec.nodeLabels", why, "set nodeSelector {"+strings.Join(labels, ", ")+
			"} in the pods of the jobs that need these nodes; for a quota of its own, give the device a type in the value devices.types of the chart")
	}
	if len(spec.Spec.NodeTaints) > 0 {
		c.result.Find(d.Name(), "spec.nodeTaints", "kube-queue compares no taints with tolerations", "nothing for jobs that tolerate the taints; the scheduler respects them")
	}
	if len(spec.Spec.Tolerations) > 0 {
		c.result.Find(d.Name(), "spec.tolerations", why, "set the tolerations in the pods of the jobs")
	}
	if spec.Spec.TopologyName != "" {
		c.result.Find(d.Name(), "spec.topologyName", "kube-queue does not place pods, and knows no topology",
			"use the topology features of the scheduler, or pod affinity in the templates of the jobs")
	}
}
