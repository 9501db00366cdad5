package resourcequota

import (
	"testing"

	"kube-queue.dev/kube-queue/test/harness"
)

// A job is not released while its containers lack a request or limit that a quota requires. The
// message lists the containers, and other jobs are not blocked.
func TestAJobWhoseContainersDoNotSayWhatAQuotaDemands(t *testing.T) {
	l := newEnv(t, "demanding")
	l.Allowed = []string{"write-budget"} // InvalidRequest is reported immediately
	l.Apply(quota("strict", "requests.cpu: 4, limits.memory: 4Gi"))
	waitForStatus(t, l)
	suite.BothWith(t, enabled, byResourceQuota)

	whole := pods{count: 1, container: container{"cpu: 500m", "memory: 512Mi"}}
	silent := pods{count: 1, container: container{"cpu: 500m", ""}}
	l.Apply(job("silent", silent) + tfjob("half", whole, silent, false) + rayjob("head", silent, whole, false) +
		spark("spark", 1, "500m", "1", false))
	waits(t, l, "Job", "silent", "InvalidRequest", "ResourceQuota demanding/strict", "limits.memory", "container main")
	waits(t, l, "TFJob", "half", "InvalidRequest", "ResourceQuota demanding/strict", "limits.memory", "container tensorflow")
	waits(t, l, "RayJob", "head", "InvalidRequest", "ResourceQuota demanding/strict", "limits.memory", "container ray")
	for kind, name := range map[string]string{"Job": "silent", "TFJob": "half", "RayJob": "head"} {
		held(t, l, kind, name)
	}
	runs(t, l, "SparkApplication", "spark") // Spark sets a memory limit
	end(l, "SparkApplication", "spark")
	l.Apply(job("whole", whole))
	runs(t, l, "Job", "whole")
	for kind, name := range map[string]string{"Job": "silent", "TFJob": "half", "RayJob": "head"} {
		held(t, l, kind, name)
	}

	// A LimitRange sets the default.
	l.Apply("---\napiVersion: v1\nkind: LimitRange\nmetadata: {name: defaults}\nspec: {limits: [{type: Container, default: {memory: 256Mi}}]}\n")
	for kind, name := range map[string]string{"Job": "silent", "TFJob": "half", "RayJob": "head"} {
		runs(t, l, kind, name)
		end(l, kind, name)
	}
	l.Delete(harness.LimitRanges, "defaults")

	// Or the quota no longer requires it.
	l.Apply(job("silent-2", silent))
	waits(t, l, "Job", "silent-2", "InvalidRequest", "limits.memory")
	l.Patch(harness.ResourceQuotas, "strict", `{"spec":{"hard":{"limits.memory":null,"limits.cpu":"4"}}}`)
	waitForStatus(t, l)
	l.Apply(spark("spark-2", 1, "500m", "", false))
	waits(t, l, "SparkApplication", "spark-2", "InvalidRequest", "limits.cpu", "container spark-kubernetes-driver")
	held(t, l, "Job", "silent-2")
	held(t, l, "SparkApplication", "spark-2")
	l.Patch(harness.ResourceQuotas, "strict", `{"spec":{"hard":{"limits.cpu":null}}}`)
	for kind, name := range map[string]string{"Job": "silent-2", "SparkApplication": "spark-2"} {
		runs(t, l, kind, name)
		end(l, kind, name)
	}
	end(l, "Job", "whole")
}
