package resourcequota

import (
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	"kube-queue.dev/kube-queue/test/harness"
)

// change is a change of the quotas of a namespace while jobs run and wait there, with the result.
type change struct {
	namespace string
	// before are the quotas before the change.
	before string
	// running and waiting are jobs at the time of the change, the latter with what they
	// wait for. The waiting are reported the next reason then, or run.
	running pods
	waiting pods
	first   reported
	apply   func(*harness.Env)
	// then is what is waited for afterwards; nothing: the job runs.
	then reported
	// last is the change that lets it run.
	last func(*harness.Env)
}

// reported is a reason with a part of its message.
type reported struct {
	reason wellknown.Reason
	words  []string
}

func says(reason wellknown.Reason, words ...string) reported { return reported{reason, words} }

func patches(quota, spec string) func(*harness.Env) {
	return func(l *harness.Env) { l.Patch(harness.ResourceQuotas, quota, `{"spec":`+spec+`}`) }
}

func deletes(quotas ...string) func(*harness.Env) { return each(harness.ResourceQuotas, quotas...) }

func each(resource schema.GroupVersionResource, names ...string) func(*harness.Env) {
	return func(l *harness.Env) {
		for _, name := range names {
			l.Delete(resource, name)
		}
	}
}

func one(amount string) pods { return pods{count: 1, container: cpu(amount)} }

var changes = []change{
	{
		namespace: "raised", before: quota("team", "cpu: 3"), running: one("2"), waiting: one("2"),
		first: says("QuotaExceeded", "ResourceQuota raised/team", "requested 2, used or reserved 2 of hard limit 3"),
		apply: patches("team", `{"hard":{"cpu":"4"}}`),
	}, {
		namespace: "lowered", before: quota("team", "cpu: 4"), running: one("3"), waiting: one("2"),
		first: says("QuotaExceeded", "ResourceQuota lowered/team", "requested 2, used or reserved 3 of hard limit 4"),
		apply: patches("team", `{"hard":{"cpu":"2"}}`),
		then:  says("QuotaExceeded"), // the figures are from the time of the message
		last:  each(harness.Jobs, "running"),
	}, {
		namespace: "lowered-more", before: quota("team", "cpu: 4"), running: one("3"), waiting: one("2"),
		first: says("QuotaExceeded", "requested 2, used or reserved 3 of hard limit 4"),
		apply: patches("team", `{"hard":{"cpu":"1"}}`),
		then:  says("ExceedsMaxQuota", "ResourceQuota lowered-more/team", "requested 2 cpu", "hard limit is 1"),
		last:  patches("team", `{"hard":{"cpu":"5"}}`),
	}, {
		namespace: "other-keys", before: quota("team", "cpu: 3"), running: one("2"), waiting: one("2"),
		first: says("QuotaExceeded", "requested 2, used or reserved 2 of hard limit 3"),
		apply: patches("team", `{"hard":{"cpu":null,"pods":"1"}}`),
		then:  says("QuotaExceeded", "ResourceQuota other-keys/team", "pods", "requested 1, used or reserved 1 of hard limit 1"),
		last:  patches("team", `{"hard":{"pods":null,"requests.cpu":"9"}}`),
	}, {
		namespace: "unsaid", before: quota("team", "cpu: 3"), running: one("2"), waiting: one("2"),
		first: says("QuotaExceeded", "requested 2, used or reserved 2 of hard limit 3"),
		apply: patches("team", `{"hard":{"cpu":null,"limits.memory":"1Gi"}}`),
		then:  says("InvalidRequest", "ResourceQuota unsaid/team", "limits.memory", "container main"),
		last:  deletes("team"),
	}, {
		namespace: "deleted", before: quota("team", "cpu: 3"), running: one("2"), waiting: one("2"),
		first: says("QuotaExceeded", "requested 2, used or reserved 2 of hard limit 3"),
		apply: deletes("team"),
	}, {
		namespace: "another", before: quota("team", "cpu: 3"), running: one("2"), waiting: one("2"),
		first: says("QuotaExceeded", "ResourceQuota another/team", "requested 2, used or reserved 2 of hard limit 3"),
		apply: func(l *harness.Env) {
			l.Apply(quota("all", "pods: 1"))
			l.Patch(harness.ResourceQuotas, "team", `{"spec":{"hard":{"cpu":"4"}}}`)
		},
		then: says("QuotaExceeded", "ResourceQuota another/all", "pods", "requested 1, used or reserved 1 of hard limit 1"),
		last: deletes("all"),
	}, {
		// Scopes are immutable: the quota is replaced by another with the same name.
		namespace: "other-scopes", before: quota("team", "pods: 1", scoped("NotTerminating")) + quota("cpu", "cpu: 3"), running: one("2"), waiting: one("1"),
		first: says("QuotaExceeded", "ResourceQuota other-scopes/team", "pods", "requested 1, used or reserved 1 of hard limit 1"),
		apply: func(l *harness.Env) {
			l.Delete(harness.ResourceQuotas, "team")
			l.Apply(quota("team", "pods: 1", scoped("Terminating")))
		},
	}, {
		namespace: "scopes-of-it", before: quota("team", "pods: 1", scoped("Terminating")) + quota("cpu", "cpu: 3"), running: one("2"), waiting: one("2"),
		first: says("QuotaExceeded", "ResourceQuota scopes-of-it/cpu", "requested 2, used or reserved 2 of hard limit 3"),
		apply: func(l *harness.Env) {
			l.Delete(harness.ResourceQuotas, "team")
			l.Apply(quota("team", "pods: 1", scoped("NotTerminating")))
			l.Patch(harness.ResourceQuotas, "cpu", `{"spec":{"hard":{"cpu":"9"}}}`)
		},
		then: says("QuotaExceeded", "ResourceQuota scopes-of-it/team", "pods", "requested 1, used or reserved 1 of hard limit 1"),
		last: deletes("team"),
	},
}

// Quotas are created, changed and deleted while jobs run and wait. Waiting jobs follow each change,
// running jobs are not affected.
func TestJobsFollowEachChangeOfTheirQuota(t *testing.T) {
	// InvalidRequest is reported immediately and each time.
	newEnv(t, "default").Allowed = []string{"write-budget"}
	suite.BothWith(t, enabled, byResourceQuota)
	envs := make([]*harness.Env, len(changes))
	for i, c := range changes {
		envs[i] = suite.Part(t, c.namespace)
		envs[i].Apply(job("running", c.running)) // before the first quota exists
	}
	for i, c := range changes {
		runs(t, envs[i], "Job", "running")
		envs[i].Apply(c.before)
	}
	for i, c := range changes {
		waitForStatus(t, envs[i])
		envs[i].Apply(job("waiting", c.waiting))
	}
	for i, c := range changes {
		waits(t, envs[i], "Job", "waiting", c.first.reason, c.first.words...)
		held(t, envs[i], "Job", "waiting")
		c.apply(envs[i])
	}
	for i, c := range changes {
		if c.then.reason != "" {
			waits(t, envs[i], "Job", "waiting", c.then.reason, c.then.words...)
			held(t, envs[i], "Job", "waiting")
			ranOn(t, envs[i])
			c.last(envs[i])
		}
	}
	for i, c := range changes {
		runs(t, envs[i], "Job", "waiting")
		if c.then.reason == "" {
			ranOn(t, envs[i])
		}
	}
}

// ranOn checks that the running job was not changed.
func ranOn(t testing.TB, l *harness.Env) {
	t.Helper()
	unit := l.Unit("Job", "running")
	if len(l.Pods("running")) != 1 || unit.Status.Phase != "Running" || unit.Status.Attempts > 1 {
		t.Errorf("%s: the job that ran has %d pods, and its unit is %v", l.Namespace, len(l.Pods("running")), unit.Status)
	}
}

// kinds are the kinds of these tests, each with the name of a job.
var kinds = []struct{ kind, name string }{{"Job", "job"}, {"TFJob", "tfjob"}, {"RayJob", "rayjob"}, {"SparkApplication", "spark"}}

// Without a quota in the namespace all jobs are released, independent of other namespaces.
func TestAQuotaIsForItsNamespaceAlone(t *testing.T) {
	newEnv(t, "default")
	tight, loose := suite.Part(t, "tight"), suite.Part(t, "loose")
	tight.Apply(quota("team", "pods: 1, cpu: 1"))
	waitForStatus(t, tight)
	suite.BothWith(t, enabled, byResourceQuota)
	big := pods{count: 3, container: cpu("9")}
	for _, l := range []*harness.Env{tight, loose} {
		l.Apply(job("small", one("1")) + job("job", big) + tfjob("tfjob", big, big, false) + rayjob("rayjob", big, big, false) + spark("spark", 3, "9", "9", false))
	}
	runs(t, tight, "Job", "small")
	for _, k := range kinds {
		runs(t, loose, k.kind, k.name)
		if len(loose.Events(k.name, "Queued")) > 0 {
			t.Errorf("%s waited: %v", k.name, loose.Unit(k.kind, k.name).Status)
		}
		waits(t, tight, k.kind, k.name, "ExceedsMaxQuota", "ResourceQuota tight/team")
		held(t, tight, k.kind, k.name)
	}
}

// waitForStatus waits until all quotas of the namespace are in force.
func waitForStatus(t testing.TB, l *harness.Env) {
	t.Helper()
	harness.Eventually(t, patience, "the quotas of "+l.Namespace+" have a status", func() (bool, string) {
		quotas := look(t, l).quotas
		return !slices.ContainsFunc(quotas, behind), "not yet"
	})
}
