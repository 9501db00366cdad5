package ack

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	schedulingv1alpha1 "kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/pkg/migration"
)

const queueNamespace = "kube-queue"

// annotationsOfQueues are settings of the former queue, without their prefix, with what to do instead.
var annotationsOfQueues = map[string]string{
	"wait-for-pods-running":        "set spec.podsReadyTimeout of the Queue to the time that pods may take, and spec.blockUntilPodsReady: true",
	"enable-queueunit-preemption":  "set spec.preemption.withinQueue: LowerPriority of the Queue, which evicts jobs whose pods run, too",
	"max-depth":                    "nothing: each job of a queue is considered",
	"priority-threshold":           "set spec.policy of the Queue",
	"queue-args":                   "nothing: the setting had no effect",
	"disable-show-queue-items":     "nothing: a Queue names no job",
	"queue-items-refresh-interval": "nothing: a Queue names no job",
	"block-for-test":               "nothing",
	"queue-suspend":                "set spec.stop: Hold of the Queue",
	"available-quota":              "list the namespaces of the jobs at the node of the quota",
	"available-quota-in-queue":     "list the namespaces of the jobs at the node of the quota",
	"available-queue":              "nothing: a job waits in the queue of its quota",
}

// queueInstead returns the advice for a key of a queue.
func queueInstead(key string) string {
	return cmp.Or(annotationsOfQueues[withoutPrefix(key)], "nothing")
}

// convertQueues converts the Queues, and the policies that ElasticQuotas set.
func (c *converter) convertQueues() {
	specs, from := map[string]map[string]any{}, map[string]string{}
	for i, g := range c.groups {
		if policy := c.policies[g.node.Name]; policy != "" {
			spec := map[string]any{}
			c.convertPolicy(c.quotas[g.node.Name].Name(), "metadata.labels: queue-policy", policy, spec)
			specs[c.groups[i].queue] = spec
		}
	}
	for _, d := range c.queues {
		name, has := c.nameOf(d)
		spec := c.queueSpec(d)
		if !has {
			if len(c.trees) > 0 || len(c.quotas) > 0 {
				c.result.Find(d.Name(), "metadata.name", "a Queue belongs to one node of the tree that lists namespaces, and there is none for this one",
					"give its jobs a node of their own, and choose it with the label kube-queue/quota-name")
				continue
			}
			c.result.Step("Add the ElasticQuotaTree to the input: the name of the Queue of %s comes from it. It is converted with the name that it has.", d.Name())
		}
		if first := from[name]; first != "" {
			c.result.Find(d.Name(), "metadata.name", first+" is for the same node of the tree, and only its settings are converted", "change spec of Queue "+name)
			continue
		}
		from[name] = d.Name()
		if specs[name] == nil {
			specs[name] = map[string]any{}
		}
		maps.Copy(specs[name], spec) // the policy of the ElasticQuota stays if the Queue has none
	}
	for _, name := range slices.Sorted(maps.Keys(specs)) {
		if len(specs[name]) > 0 {
			c.result.Objects = append(c.result.Objects, migration.Object(schedulingv1alpha1.SchemeGroupVersion.String(), "Queue", queueNamespace, name, map[string]any{"spec": specs[name]}))
		}
	}
}

// nameOf returns the name of the Queue of the same group.
func (c *converter) nameOf(d migration.Document) (string, bool) {
	former := ""
	for _, prefix := range prefixes {
		former = cmp.Or(former, d.Object.GetAnnotations()[prefix+"quota-fullname"])
	}
	for _, g := range c.groups {
		_, below, _ := strings.Cut(g.path, "/")
		dashed := strings.TrimSuffix("root-"+strings.ReplaceAll(below, "/", "-"), "-")
		if former != "" && c.pathOf(former) == g.path || former == "" && (d.Object.GetName() == dashed || d.Object.GetName() == g.node.Name) {
			return g.queue, true
		}
	}
	return d.Object.GetName(), false
}

func (c *converter) queueSpec(d migration.Document) map[string]any {
	written, spec := map[string]any{}, map[string]any{}
	if fields, is := d.Object.Object["spec"].(map[string]any); is {
		spec = fields
	} else if d.Object.Object["spec"] != nil {
		c.faults.Add(d, "spec is not an object")
	}
	for _, field := range slices.Sorted(maps.Keys(spec)) {
		switch value := spec[field]; field {
		case "queuePolicy":
			c.convertPolicy(d.Name(), "spec.queuePolicy", fmt.Sprint(value), written)
		case "priority":
			if number, is := value.(int64); !is || number != int64(int32(number)) {
				c.faults.Add(d, "spec.priority %v is no integer of 32 bits", value)
			} else if number != 0 {
				written["priority"] = number
			}
		case "priorityClassName":
			if value != "" {
				c.result.Find(d.Name(), "spec.priorityClassName", "the priority of a Queue is a number", "set spec.priority of the Queue to the value of the class")
			}
		case "admissionChecks":
			c.convertChecks(d, value, written)
		default:
			c.result.Find(d.Name(), "spec."+field, "the field is unknown and is not converted", "correct its name, or remove it")
		}
	}
	annotations := d.Object.GetAnnotations()
	for _, key := range slices.Sorted(maps.Keys(annotations)) {
		switch short := withoutPrefix(key); {
		case !hasPrefix(key), short == "quota-fullname", short == "parent-quota-fullname":
		case short == "queue-suspend" && annotations[key] == "true":
			written["stop"] = string(schedulingv1alpha1.StopHold)
		case short == "queue-suspend" && annotations[key] == "false":
		default:
			c.result.Find(d.Name(), "metadata.annotations: "+key, "the setting is not converted", queueInstead(key))
		}
	}
	return written
}

func (c *converter) convertPolicy(object, field, policy string, spec map[string]any) {
	switch policy {
	case "Priority", "Block":
		spec["policy"] = policy
	case "Intelligent":
		spec["policy"] = string(schedulingv1alpha1.PolicyPriority)
		c.result.Find(object, field, "no policy treats jobs above a threshold differently; Priority is set", "give the jobs that must not be passed a queue of their own with policy Block")
	case "":
	default:
		c.result.Find(object, field, fmt.Sprintf("the policy %q is not known; the former queue did not serve such a queue either", policy), "set spec.policy of the Queue: RoundRobin, Priority or Block")
	}
}

// maxChecks is the maximum number of checks in a Queue.
const maxChecks = 8

func (c *converter) convertChecks(d migration.Document, value any, spec map[string]any) {
	list, is := value.([]any)
	if !is {
		c.faults.Add(d, "spec.admissionChecks is no list")
		return
	}
	var names []any
	for i, element := range list {
		check, _ := element.(map[string]any)
		name, has := check["name"].(string)
		if !has {
			c.faults.Add(d, "spec.admissionChecks[%d] has no name", i)
			continue
		}
		if selector, _ := check["labelSelector"].(map[string]any); len(selector) > 0 {
			c.result.Find(d.Name(), fmt.Sprintf("spec.admissionChecks[%d].labelSelector", i), "a check applies to all jobs of a queue", "let the controller of the check answer Ready for the others")
		}
		switch {
		case slices.Contains(names, any(name)): // with another selector
		case len(names) == maxChecks:
			c.result.Find(d.Name(), fmt.Sprintf("spec.admissionChecks[%d]", i), fmt.Sprintf("a Queue lists at most %d checks", maxChecks), "combine checks in one controller")
		default:
			names = append(names, name)
		}
	}
	if len(names) > 0 {
		spec["admissionChecks"] = names
		c.result.Step("Create the AdmissionChecks that %s names, in the group scheduling.x-k8s.io: convert those of Kueue with --from kueue.", d.Name())
	}
}
