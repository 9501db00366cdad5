package kueue

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"kube-queue.dev/kube-queue/pkg/migration"
)

// configGroup is the API group of the configuration of Kueue's manager.
const configGroup = "config.kueue.x-k8s.io"

// configKey is the file of the configuration in its ConfigMap.
const configKey = "controller_manager_config.yaml"

// readConfigurations converts the configurations of Kueue's manager, alone or in a ConfigMap. It skips other
// ConfigMaps.
func (c *converter) readConfigurations() {
	for _, d := range c.configurations {
		if d.Object.GetKind() != "ConfigMap" {
			c.readConfiguration(d, d.Object.Object)
			continue
		}
		text, has, _ := unstructured.NestedString(d.Object.Object, "data", configKey)
		if !has {
			continue
		}
		inner, err := migration.Read(d.Source+": "+configKey, strings.NewReader(text))
		if err != nil {
			c.faults.Add(d, "%s: %v", configKey, err)
			continue
		}
		for _, document := range inner {
			c.readConfiguration(d, document.Object.Object)
		}
	}
}

// ofTheManager are the fields of a configuration that affect only the program. They have no counterpart, and nothing
// is lost without them.
var ofTheManager = []string{"apiVersion", "kind", "metadata", "namespace", "health", "metrics", "webhook", "leaderElection", "controller",
	"clientConnection", "internalCertManagement", "pprofBindAddress", "tls"}

// withoutEqual are the fields of a configuration whose features have no equivalent, with what to do instead.
var withoutEqual = map[string]string{
	"fairSharing":                          "nothing: free quota goes first to the branch with the smallest share of its guarantee, without evictions for it",
	"admissionFairSharing":                 "give each namespace a quota node of its own",
	"multiKueue":                           "install kube-queue in each cluster",
	"resources":                            "leave the resources out of the max of the nodes, so that they are not limited",
	"featureGates":                         "nothing",
	"visibility":                           "ask kube-queue why a job waits with kubectl kube-queue why",
	"queueVisibility":                      "ask kube-queue why a job waits with kubectl kube-queue why",
	"objectRetentionPolicies":              "nothing: a QueueUnit is deleted with its job",
	"managedJobsNamespaceSelector":         "label the namespaces kube-queue/managed=true",
	"workloadPriorityClassDefaulting":      "set a global default PriorityClass",
	"quotaCheckStrategy":                   "name every resource that is limited in the max of the nodes",
	"concurrentAdmission":                  "nothing",
	"preemptionStrategies":                 "nothing",
	"manageJobsWithoutQueueNameNamespaces": "label the namespaces kube-queue/managed=true",
}

func (c *converter) readConfiguration(d migration.Document, fields map[string]any) {
	for _, key := range slices.Sorted(maps.Keys(fields)) {
		switch {
		case slices.Contains(ofTheManager, key):
		case key == "manageJobsWithoutQueueName":
			if fields[key] == true {
				c.result.Step("Label each namespace whose jobs are all queued, with or without a mark: kubectl label namespace NAME kube-queue/managed=true. Kueue does this for all namespaces (manageJobsWithoutQueueName).")
			}
		case key == "waitForPodsReady":
			c.readWait(d, fields)
		case key == "integrations":
			c.readIntegrations(d, fields)
		default:
			c.result.Find(d.Name(), key, "the setting has no equivalent", cmp.Or(withoutEqual[key], "nothing, if the default of kube-queue suits"))
		}
	}
}

func (c *converter) readWait(d migration.Document, fields map[string]any) {
	wait, _, err := unstructured.NestedMap(fields, "waitForPodsReady")
	if err != nil {
		c.faults.Add(d, "%v", err)
		return
	}
	// In v1beta1, it is off by default. If it is on, it blocks by default.
	older := fields["apiVersion"] == configGroup+"/v1beta1"
	if enabled, set := wait["enable"].(bool); set && !enabled || older && !set {
		return
	}
	c.waits = "5m" // the default of Kueue
	if text, is := wait["timeout"].(string); is {
		if timeout, err := time.ParseDuration(text); err != nil || timeout < time.Second {
			c.faults.Add(d, "waitForPodsReady.timeout %q is no duration of at least 1s", text)
		}
		c.waits = text
	}
	blocks, set := wait["blockAdmission"].(bool)
	c.waitsBlock = blocks || older && !set
	for _, field := range []string{"requeuingStrategy", "recoveryTimeout"} {
		if wait[field] != nil {
			c.result.Find(d.Name(), "waitForPodsReady."+field, "a job whose pods are not ready in time is queued again after 10 s, doubling to 15 minutes, and one pod that fails later stops no job",
				"set the annotation scheduling.x-k8s.io/active of jobs that must not be tried again to \"false\"")
		}
	}
}

// frameworks are Kueue's names for the kinds of jobs that kube-queue queues. By default, the chart queues all but
// pods.
var frameworks = []string{"batch/job", "pod", "kubeflow.org/mpijob", "kubeflow.org/paddlejob", "kubeflow.org/pytorchjob", "kubeflow.org/tfjob",
	"kubeflow.org/xgboostjob", "kubeflow.org/jaxjob", "trainer.kubeflow.org/trainjob", "ray.io/rayjob", "ray.io/raycluster", "jobset.x-k8s.io/jobset",
	"sparkoperator.k8s.io/sparkapplication"}

func (c *converter) readIntegrations(d migration.Document, fields map[string]any) {
	list, _, err := unstructured.NestedStringSlice(fields, "integrations", "frameworks")
	if err != nil {
		c.faults.Add(d, "%v", err)
	}
	for _, framework := range list {
		c.pods = c.pods || framework == "pod"
		if !slices.Contains(frameworks, strings.ToLower(framework)) {
			c.result.Find(d.Name(), "integrations.frameworks: "+framework, "jobs of this kind are not queued", notQueued)
		}
	}
	rest, _, _ := unstructured.NestedMap(fields, "integrations")
	for _, field := range []string{"externalFrameworks", "labelKeysToCopy", "podOptions"} {
		if rest[field] != nil {
			c.result.Find(d.Name(), "integrations."+field, "the setting has no equivalent", "nothing")
		}
	}
}

// notQueued is the advice for jobs of other kinds.
const notQueued = "charge their pods to the quota with --count-unqueued-pods, or run them as Jobs"
