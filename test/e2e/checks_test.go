package e2e

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	schedulingv1alpha1 "kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/test/built"
	"kube-queue.dev/kube-queue/test/clustertest"
	"kube-queue.dev/kube-queue/test/harness"
)

// checks are the actions of the owners of admission checks, and of an administrator.
type checks struct {
	*testing.T
	*harness.Env
}

func newChecks(t *testing.T, l *harness.Env, names ...string) checks {
	t.Helper()
	c := checks{t, l}
	api := l.Queue.SchedulingV1alpha1().AdmissionChecks()
	for _, name := range names {
		_, err := api.Create(t.Context(), &schedulingv1alpha1.AdmissionCheck{ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: schedulingv1alpha1.AdmissionCheckSpec{ControllerName: "example.com/" + name}}, metav1.CreateOptions{})
		harness.Must(t, err)
		t.Cleanup(func() { harness.Must(t, api.Delete(context.Background(), name, metav1.DeleteOptions{})) })
	}
	return c
}

// queue creates a Queue with a spec before its quota exists, so that no unit misses it.
func (c checks) queue(name string, spec schedulingv1alpha1.QueueSpec) {
	c.Helper()
	queues := c.Queue.SchedulingV1alpha1().Queues(clustertest.Namespace)
	_, err := queues.Create(c.Context(), &schedulingv1alpha1.Queue{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: spec}, metav1.CreateOptions{})
	harness.Must(c.T, err)
	c.Cleanup(func() { harness.Must(c.T, queues.Delete(context.Background(), name, metav1.DeleteOptions{})) })
}

// decide writes the state of a check of a unit, as soon as the unit is Reserved.
func (c checks) decide(name, check string, state schedulingv1alpha1.CheckState, message string) {
	c.Helper()
	harness.Eventually(c.T, time.Minute, "check "+check+" of "+name+" is "+string(state), func() (bool, string) {
		unit := c.Unit("Job", name)
		if unit == nil || len(unit.Status.AdmissionChecks) == 0 {
			return false, "it has no check"
		}
		for i := range unit.Status.AdmissionChecks {
			if s := &unit.Status.AdmissionChecks[i]; s.Name == check {
				s.State, s.Message, s.LastTransitionTime = state, message, metav1.Now()
			}
		}
		patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"resourceVersion": unit.ResourceVersion},
			"status": map[string]any{"admissionChecks": unit.Status.AdmissionChecks}})
		harness.Must(c.T, err)
		_, err = c.Queue.SchedulingV1alpha1().QueueUnits(unit.Namespace).Patch(c.Context(), unit.Name, types.MergePatchType, patch, metav1.PatchOptions{}, "status")
		return err == nil, "it was written in the meantime"
	})
}

// example runs the example of a controller of a check with the rights of its ServiceAccount.
func example(t *testing.T, l *harness.Env, args ...string) (stop func()) {
	t.Helper()
	_, kubeconfig, err := suite.ServiceAccountConfig(t.Context(), "after-hours")
	harness.Must(t, err)
	folder, err := built.Programs(t.Context(), ".", "kube-queue.dev/kube-queue/examples/admission-check")
	harness.Must(t, err)
	var said strings.Builder
	cmd := exec.Command(filepath.Join(folder, "admission-check"), append([]string{"--kubeconfig", kubeconfig}, args...)...)
	cmd.Stdout, cmd.Stderr = os.Stdout, &said
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	harness.Must(t, cmd.Start())
	return func() {
		harness.Must(t, cmd.Process.Signal(syscall.SIGTERM))
		if err := cmd.Wait(); err != nil || said.Len() > 0 {
			t.Errorf("the example ended with %v and logged %s", err, said.String())
		}
	}
}

// A controller that is not of kube-queue decides when jobs start. It may write its own verdicts only.
func TestAJobStartsWhenTheExampleOfACheckPasses(t *testing.T) {
	l := suite.Env(t, "checked")
	c := newChecks(t, l, "after-hours")
	l.ApplyAsIs(afterHours)
	t.Cleanup(func() {
		_, err := suite.Kubectl(context.Background(), "delete", "clusterrolebinding/after-hours", "clusterrole/after-hours", "-n", "kube-queue", "serviceaccount/after-hours")
		harness.Must(t, err)
	})
	c.queue("root-checked", schedulingv1alpha1.QueueSpec{AdmissionChecks: []string{"after-hours"}})
	suite.Both(t, enabled)
	stop := example(t, l, "--from=0", "--to=0") // never
	l.TreeOf(`{name: checked, namespaces: [checked], max: {cpu: "2"}}`)
	l.Apply(job{name: "first", cpu: "2", runs: time.Second}.String() + job{name: "second", cpu: "2", runs: time.Second}.String())
	l.WaitForReason("Job", "second", "QuotaExceeded")
	harness.Eventually(t, time.Minute, "the message of the check is shown", func() (bool, string) {
		unit := l.Unit("Job", "first")
		return unit.Status.Phase == "Reserved" && unit.Status.Message == "admission check after-hours is not decided: jobs start from 0:00 UTC", unit.Status.Message
	})
	if pods := l.Pods("first"); len(pods) > 0 {
		t.Errorf("it has pods: %v", pods)
	}
	if event := l.WaitForEvent("first", "Queued"); !strings.Contains(event.Message, "admission check") {
		t.Errorf("the event says %q", event.Message)
	}
	stop()
	stop = example(t, l, "--from=0", "--to=24") // always
	l.WaitForPhase("Job", "first", "Succeeded")
	l.WaitForPhase("Job", "second", "Succeeded")
	stop()
	l.ExpectFree()
}

const afterHours = `
apiVersion: v1
kind: ServiceAccount
metadata: {name: after-hours, namespace: kube-queue}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: after-hours}
rules:
- {apiGroups: [scheduling.x-k8s.io], resources: [queueunits], verbs: [get, list, watch]}
- {apiGroups: [scheduling.x-k8s.io], resources: [queueunits/status], verbs: [patch]}
- {apiGroups: [scheduling.x-k8s.io], resources: [admissionchecks], resourceNames: [after-hours], verbs: [decide]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: after-hours}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: after-hours}
subjects: [{kind: ServiceAccount, name: after-hours, namespace: kube-queue}]
`

// A preemptor waits for its check, its victim is Reserved, the queue is drained, and the job changes.
func TestReservedJobsGiveTheirQuotaBack(t *testing.T) {
	l := suite.Env(t, "reserved")
	c := newChecks(t, l, "nodes")
	c.queue("root-reserved", schedulingv1alpha1.QueueSpec{AdmissionChecks: []string{"nodes"},
		Preemption: &schedulingv1alpha1.QueuePreemption{WithinQueue: schedulingv1alpha1.PreemptLowerPriority}})
	suite.Both(t, enabled)
	l.TreeOf(`{name: reserved, namespaces: [reserved], max: {cpu: "2"}}`)
	l.Apply(job{name: "low", cpu: "2", runs: time.Second}.String())
	l.WaitForPhase("Job", "low", "Reserved")
	l.Apply(job{name: "high", cpu: "2", runs: time.Second, annotations: `scheduling.x-k8s.io/priority: "1000"`}.String())
	l.WaitForPhase("Job", "high", "Reserved")
	l.WaitForReason("Job", "low", "QuotaExceeded")

	c.decide("high", "nodes", schedulingv1alpha1.CheckRetry, "there is no node")
	l.WaitForPhase("Job", "high", "Backoff")
	l.WaitForPhase("Job", "low", "Reserved")
	l.PatchQueue("root-reserved", `{"spec":{"stop":"Drain"}}`)
	if unit := l.WaitForReason("Job", "low", "QueueStopped"); unit.Status.Phase != "Enqueued" || len(unit.Status.AdmissionChecks) > 0 {
		t.Errorf("it waits with %+v", unit.Status)
	}
	l.ExpectFree()
	l.Patch(harness.Jobs, "low", `{"metadata": {"annotations": {"scheduling.x-k8s.io/priority": "2000"}}}`)
	l.PatchQueue("root-reserved", `{"spec":{"stop":"None"}}`)
	unit := l.WaitForPhase("Job", "low", "Reserved")
	if unit.Status.Attempts != 0 || unit.Status.Reservations != 3 {
		t.Errorf("it was reserved with %+v", unit.Status)
	}
	l.Patch(harness.Jobs, "low", `{"metadata": {"labels": {"kube-queue/quota-name": "reserved"}}}`) // the job changes
	harness.Eventually(t, time.Minute, "the changed job is asked again", func() (bool, string) {
		unit := l.Unit("Job", "low")
		return unit.Status.Phase == "Reserved" && unit.Status.Reservations == 4 && unit.Spec.QuotaName == "reserved", string(unit.Status.Phase)
	})
	c.decide("low", "nodes", schedulingv1alpha1.CheckReady, "")
	l.WaitForPhase("Job", "low", "Succeeded")
	c.decide("high", "nodes", schedulingv1alpha1.CheckReady, "")
	l.WaitForPhase("Job", "high", "Succeeded")
	l.ExpectFree()
}

// Whichever write of a check is lost, no quota is lost and each job runs once. job-extensions has one job only: after each
// start it writes the event of a job that waits first, and would never get to its second write.
func TestProgramsKilledAtEachWriteOfChecks(t *testing.T) {
	for _, k := range kills {
		t.Run(k.name, func(t *testing.T) {
			k.onlySomeInTest(t)
			l := suite.Env(t, "checkfaults")
			c := newChecks(t, l, "nodes")
			executioner := startToKill(t, l, k.victim, k.when)
			c.queue("root-checkfaults", schedulingv1alpha1.QueueSpec{AdmissionChecks: []string{"nodes"}})
			l.TreeOf(`{name: checkfaults, namespaces: [checkfaults], max: {cpu: "2"}}`)
			names := []string{"one"}
			if k.victim == harness.Controller {
				names = append(names, "two")
			}
			for _, name := range names {
				l.Apply(job{name: name, cpu: "2", runs: time.Second}.String())
			}
			reserved := func(name string, reservations int32) func() bool {
				return func() bool {
					unit := l.Unit("Job", name)
					return unit != nil && unit.Status.Phase == "Reserved" && unit.Status.Reservations == reservations
				}
			}
			steps := []struct {
				done func() bool
				then func()
			}{
				{reserved("one", 1), func() { c.decide("one", "nodes", schedulingv1alpha1.CheckRetry, "there is no node") }},
				{reserved("two", 1), func() { c.decide("two", "nodes", schedulingv1alpha1.CheckReady, "") }},
				{reserved("one", 2), func() { c.decide("one", "nodes", schedulingv1alpha1.CheckReady, "") }},
			}
			if k.victim == harness.Extensions {
				steps = slices.Delete(steps, 1, 2)
			}
			executioner.Revive(t, func() bool {
				if len(steps) > 0 {
					if steps[0].done() {
						steps[0].then()
						steps = steps[1:]
					}
					return false
				}
				if slices.ContainsFunc(names, func(name string) bool { return !l.Ended("Job", name) }) {
					return false
				}
				free, _ := l.Free() // the status of the tree is written last
				return free || k.victim != harness.Controller
			})
			t.Logf("%s was killed %d times", k.victim, executioner.Kills)
			if executioner.Kills < 4 {
				t.Errorf("killed %d times; the story has more writes than that", executioner.Kills)
			}
			for _, name := range names {
				if unit := l.WaitForPhase("Job", name, "Succeeded"); unit.Status.Attempts != 1 {
					t.Errorf("%s was released %d times", name, unit.Status.Attempts)
				}
			}
			l.ExpectFree()
			l.Allowed = []string{"write-budget"} // a write without a response is repeated
		})
	}
}

// The pods of a job that does not fit on the nodes are never ready, so that the next job gets its quota.
func aJobWhosePodsAreNeverReadyMakesRoom(t *testing.T, l *harness.Env) {
	c := newChecks(t, l)
	c.queue("root-unready", schedulingv1alpha1.QueueSpec{PodsReadyTimeout: &metav1.Duration{Duration: 12 * time.Second}})
	l.TreeOf(`{name: unready, namespaces: [unready], max: {cpu: 1k}}`)
	l.Apply(job{name: "too-large", cpu: "1k", runs: time.Second}.String())
	l.WaitForPhase("Job", "too-large", "Dequeued")
	l.Apply(job{name: "small", cpu: "1", runs: harness.UntilFinished}.String())
	event := l.WaitForEvent("too-large", "PodsReadyTimeout")
	if !strings.Contains(event.Message, "not all pods of the job were ready 12s after its release") {
		t.Errorf("the event says %q", event.Message)
	}
	l.WaitForPhase("Job", "too-large", "Backoff")
	unit := l.WaitForPhase("Job", "small", "Running")
	harness.Eventually(t, time.Minute, "its pods are ready", func() (bool, string) {
		for _, condition := range l.Unit("Job", "small").Status.Conditions {
			if condition.Type == "PodsReady" && condition.Status == metav1.ConditionTrue {
				return true, ""
			}
		}
		return false, ""
	})
	harness.Never(t, 12*time.Second, "it is evicted", func() (bool, string) {
		now := l.Unit("Job", "small")
		return now.Status.Attempts != unit.Status.Attempts || now.Status.Phase != "Running", string(now.Status.Phase)
	})
	l.Finish(harness.Jobs, "small")
	l.Delete(harness.Jobs, "too-large")
	l.WaitForPhase("Job", "small", "Succeeded")
}
