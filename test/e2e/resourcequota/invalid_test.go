package resourcequota

import (
	"testing"

	"kube-queue.dev/kube-queue/test/harness"
)

// A job is not released while its containers lack a request or limit that a quota requires. The message lists the
// containers. Other jobs are not blocked.
func TestAJobWhoseContainersDoNotSayWhatAQuotaDemands(t *testing.T) {
	l := newEnv(t, "demanding")
	l.Allowed = []string{"write-budget"} // InvalidRequest is reported immediately
	l.Apply(quota("strict", "requests.cpu: 4, limits.memory: 4Gi"))
	waitForStatus(t, l)
	suite.BothWith(t, enabled, byResourceQuota)

	whole := pods{count: 1, container: container{"cpu: 500m", "memory: 512Mi"}}
	silent := pods{count: 1, container: container{"cpu: 500m", ""}}

	l.Apply(job("silent", silent))
	l.WaitForReason("Job", "silent", "InvalidRequest", "ResourceQuota demanding/strict", "limits.memory", "container main")
	held(t, l, "Job", "silent")
	l.Apply(spark("spark", 1, "500m", false) + job("whole", whole))
	runs(t, l, "SparkApplication", "spark") // Spark sets a memory limit
	runs(t, l, "Job", "whole")
	end(l, "SparkApplication", "spark")
	held(t, l, "Job", "silent")

	// A LimitRange sets a default.
	l.Apply("---\napiVersion: v1\nkind: LimitRange\nmetadata: {name: defaults}\nspec: {limits: [{type: Container, default: {memory: 256Mi}}]}\n")
	runs(t, l, "Job", "silent")
	end(l, "Job", "silent")
	l.Delete(harness.LimitRanges, "defaults")

	// The quota no longer requires it.
	l.Apply(job("silent-2", silent))
	l.WaitForReason("Job", "silent-2", "InvalidRequest", "limits.memory")
	held(t, l, "Job", "silent-2")
	l.Patch(harness.ResourceQuotas, "strict", `{"spec":{"hard":{"limits.memory":null}}}`)
	runs(t, l, "Job", "silent-2")
	end(l, "Job", "silent-2")
	end(l, "Job", "whole")
}
