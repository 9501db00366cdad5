package e2e

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	schedulingv1alpha1 "kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/test/built"
	"kube-queue.dev/kube-queue/test/harness"
	"kube-queue.dev/kube-queue/test/require"
)

// example runs the example of a check controller with the rights of its ServiceAccount.
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

// A controller outside of kube-queue decides when jobs start. It may write only its own verdicts.
func TestAJobStartsWhenTheExampleOfACheckPasses(t *testing.T) {
	l := suite.Env(t, "checked")
	l.CreateCheck("after-hours")
	l.ApplyAsIs(afterHours)
	t.Cleanup(func() {
		_, err := suite.Kubectl(context.Background(), "delete", "clusterrolebinding/after-hours", "clusterrole/after-hours", "-n", "kube-queue", "serviceaccount/after-hours")
		harness.Must(t, err)
	})
	l.CreateQueue("root-checked", schedulingv1alpha1.QueueSpec{AdmissionChecks: []string{"after-hours"}})
	suite.Both(t, enabled)
	stop := example(t, l, "--from=0", "--to=0") // never
	l.TreeOf(`{name: checked, namespaces: [checked], max: {cpu: "2"}}`)
	l.Apply(harness.Job{Name: "first", CPU: "2", Runs: time.Second}.String() + harness.Job{Name: "second", CPU: "2", Runs: time.Second}.String())
	l.WaitForReason("Job", "second", "QuotaExceeded")
	harness.Eventually(t, time.Minute, "the message of the check is shown", func() (bool, string) {
		unit := l.Unit("Job", "first")
		return unit.Status.Phase == "Reserved" && unit.Status.Message == "admission check after-hours is not decided: jobs start from 0:00 UTC", unit.Status.Message
	})
	if pods := l.Pods("first"); len(pods) > 0 {
		t.Errorf("it has pods: %v", pods)
	}
	require.Says(t, "the event", l.WaitForEvent("first", "Queued").Message, "admission check")
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

// Whichever write of a check is lost, no quota is lost and each job runs once. job-extensions has only one job: after
// each start, it first writes the event of a waiting job, and would never get to its second write.
func TestProgramsKilledAtEachWriteOfChecks(t *testing.T) {
	for _, k := range kills {
		t.Run(k.name, func(t *testing.T) {
			k.onlySomeInTest(t)
			l := suite.Env(t, "checkfaults")
			l.CreateCheck("nodes")
			executioner := startToKill(t, l, k.victim, k.when)
			l.CreateQueue("root-checkfaults", schedulingv1alpha1.QueueSpec{AdmissionChecks: []string{"nodes"}})
			l.TreeOf(`{name: checkfaults, namespaces: [checkfaults], max: {cpu: "2"}}`)
			decides := func(name string, reservations int32, state schedulingv1alpha1.CheckState, message string) act {
				return act{func() bool {
					unit := l.Unit("Job", name)
					return unit != nil && unit.Status.Phase == "Reserved" && unit.Status.Reservations == reservations
				}, func() { l.Decide(name, "nodes", state, message) }}
			}
			jobs := []ending{{"Job", "one", "Succeeded", 1}}
			acts := []act{decides("one", 1, schedulingv1alpha1.CheckRetry, "there is no node"), decides("one", 2, schedulingv1alpha1.CheckReady, "")}
			if k.victim == harness.Controller {
				jobs = append(jobs, ending{"Job", "two", "Succeeded", 1})
				acts = slices.Insert(acts, 1, decides("two", 1, schedulingv1alpha1.CheckReady, ""))
			}
			for _, j := range jobs {
				l.Apply(harness.Job{Name: j.name, CPU: "2", Runs: time.Second}.String())
			}
			k.revive(t, l, executioner, 4, jobs, acts...)
		})
	}
}
