package resourcequota

import (
	"strconv"
	"testing"

	"kube-queue.dev/kube-queue/test/harness"
)

// priorityClasses are the classes of the rows below. Other tests do not use them.
const priorityClasses = `---
{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: quota-high}, value: 9}
---
{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: quota-low}, value: 3}
`

const (
	high     = "priorityClassName: quota-high, "
	low      = "priorityClassName: quota-low, "
	deadline = "activeDeadlineSeconds: 36000, "
	// across is a pod affinity to pods of another namespace.
	across = `affinity: {podAntiAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 1,
		podAffinityTerm: {topologyKey: kubernetes.io/hostname, namespaces: [default], labelSelector: {matchLabels: {a: b}}}}]}}, `
)

func scoped(scope string) string { return "scopes: [" + scope + "]" }

func byClass(operator string) string {
	return "scopeSelector: {matchExpressions: [{scopeName: PriorityClass, " + operator + "}]}"
}

// counted are quotas, each in its own namespace, with a first job that leaves too little quota, a
// job that has to wait for it, and a job that does not.
var counted = []struct {
	namespace, quotas    string
	first, waits, passes pods
	words                []string
	// untilDeleted: the quota counts a job until it is deleted, even after its end.
	untilDeleted bool
}{
	{
		namespace: "best-effort", quotas: quota("few", "pods: 2", scoped("BestEffort")),
		first: pods{count: 2}, waits: pods{count: 1}, passes: pods{count: 3, container: cpu("100m")},
		words: []string{"ResourceQuota best-effort/few", "pods", "requested 1", "used or reserved 2 of hard limit 2"},
	}, {
		namespace: "not-best-effort", quotas: quota("sized", "cpu: 1", scoped("NotBestEffort")),
		first: pods{count: 1, container: cpu("1")}, waits: pods{count: 2, container: cpu("250m")}, passes: pods{count: 3},
		words: []string{"ResourceQuota not-best-effort/sized", "cpu", "requested 500m", "used or reserved 1 of hard limit 1"},
	}, {
		namespace: "terminating", quotas: quota("short", "pods: 1", scoped("Terminating")),
		first: pods{count: 1, spec: deadline}, waits: pods{count: 1, spec: deadline}, passes: pods{count: 3},
		words: []string{"ResourceQuota terminating/short", "pods"},
	}, {
		namespace: "not-terminating", quotas: quota("long", "requests.cpu: 1", scoped("NotTerminating")),
		first: pods{count: 1, container: cpu("600m")}, waits: pods{count: 1, container: cpu("600m")},
		passes: pods{count: 1, container: cpu("2"), spec: deadline},
		words:  []string{"ResourceQuota not-terminating/long", "requests.cpu", "requested 600m", "used or reserved 600m of hard limit 1"},
	}, {
		namespace: "class-in", quotas: quota("urgent", "cpu: 1", byClass("operator: In, values: [quota-high]")),
		first: pods{count: 1, container: cpu("1"), spec: high}, waits: pods{count: 1, container: cpu("1"), spec: high},
		passes: pods{count: 2, container: cpu("1"), spec: low},
		words:  []string{"ResourceQuota class-in/urgent", "cpu"},
	}, {
		namespace: "class-not-in", quotas: quota("others", "pods: 1", byClass("operator: NotIn, values: [quota-high]")),
		first: pods{count: 1, spec: low}, waits: pods{count: 1}, passes: pods{count: 2, spec: high},
		words: []string{"ResourceQuota class-not-in/others", "pods"},
	}, {
		namespace: "class-exists", quotas: quota("classed", "pods: 2", byClass("operator: Exists")),
		first: pods{count: 2, spec: low}, waits: pods{count: 1, spec: high}, passes: pods{count: 3},
		words: []string{"ResourceQuota class-exists/classed", "pods"},
	}, {
		namespace: "class-not-there", quotas: quota("plain", "pods: 2", byClass("operator: DoesNotExist")),
		first: pods{count: 2}, waits: pods{count: 1}, passes: pods{count: 3, spec: low},
		words: []string{"ResourceQuota class-not-there/plain", "pods"},
	}, {
		namespace: "affinity", quotas: quota("across", "pods: 1", scoped("CrossNamespacePodAffinity")),
		first: pods{count: 1, spec: across}, waits: pods{count: 1, spec: across}, passes: pods{count: 2},
		words: []string{"ResourceQuota affinity/across", "pods"},
	}, {
		namespace: "two-scopes", quotas: quota("both", "pods: 1", "scopes: [Terminating, BestEffort]"),
		first: pods{count: 1, spec: deadline}, waits: pods{count: 1, spec: deadline}, passes: pods{count: 2, spec: deadline, container: cpu("100m")},
		words: []string{"ResourceQuota two-scopes/both", "pods"},
	}, {
		namespace: "extended", quotas: quota("gpus", "requests.nvidia.com/gpu: 3"),
		first: gpus(2), waits: gpus(2), passes: gpus(1),
		words: []string{"ResourceQuota extended/gpus", "requests.nvidia.com/gpu", "requested 2"},
	}, {
		namespace: "limits", quotas: quota("limits", "limits.cpu: 2, limits.memory: 2Gi"),
		first:  pods{count: 1, container: container{"cpu: 100m", "cpu: 1, memory: 1500Mi"}},
		waits:  pods{count: 1, container: container{"cpu: 100m", "cpu: 500m, memory: 1Gi"}},
		passes: pods{count: 1, container: container{"cpu: 100m", "cpu: 500m, memory: 256Mi"}},
		words:  []string{"ResourceQuota limits/limits", "limits.memory", "requested 1Gi"},
	}, {
		namespace: "two-quotas", quotas: quota("cpu", "cpu: 8") + quota("memory", "requests.memory: 1Gi"),
		first:  pods{count: 1, container: container{requests: "cpu: 1, memory: 600Mi"}},
		waits:  pods{count: 1, container: container{requests: "cpu: 1, memory: 600Mi"}},
		passes: pods{count: 1, container: container{requests: "cpu: 3, memory: 400Mi"}},
		words:  []string{"ResourceQuota two-quotas/memory", "requests.memory", "requested 600Mi"},
	}, {
		namespace: "count-pods", quotas: quota("objects", "count/pods: 4"),
		first: pods{count: 3}, waits: pods{count: 2}, passes: pods{count: 1},
		words:        []string{"ResourceQuota count-pods/objects", "count/pods", "requested 2"},
		untilDeleted: true,
	},
}

// gpus returns a container that requests GPUs.
func gpus(count int) pods {
	amount := "nvidia.com/gpu: " + strconv.Itoa(count)
	return pods{count: 1, container: container{amount, amount}}
}

// Jobs wait for a quota exactly if it counts their pods, for all scopes and keys.
func TestOnlyThoseJobsWaitThatAQuotaCounts(t *testing.T) {
	newEnv(t, "default").ApplyAsIs(priorityClasses)
	envs := make([]*harness.Env, len(counted))
	for i, c := range counted {
		envs[i] = suite.Part(t, c.namespace)
		envs[i].Apply(c.quotas)
	}
	suite.BothWith(t, enabled, byResourceQuota)
	for i, c := range counted {
		envs[i].Apply(job("first", c.first))
	}
	for i, c := range counted {
		runs(t, envs[i], "Job", "first")
		envs[i].Apply(job("waits", c.waits) + job("passes", c.passes))
	}
	for i, c := range counted {
		runs(t, envs[i], "Job", "passes")
		waits(t, envs[i], "Job", "waits", "QuotaExceeded", c.words...)
		held(t, envs[i], "Job", "waits")
	}
	for i := range counted {
		envs[i].Finish(harness.Jobs, "passes")
		envs[i].Finish(harness.Jobs, "first")
	}
	for i, c := range counted {
		envs[i].WaitForPhase("Job", "passes", "Succeeded")
		envs[i].WaitForPhase("Job", "first", "Succeeded")
		if c.untilDeleted {
			held(t, envs[i], "Job", "waits")
			envs[i].Delete(harness.Jobs, "first")
		}
	}
	for i := range counted {
		runs(t, envs[i], "Job", "waits")
	}
}
