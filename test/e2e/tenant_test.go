package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	"kube-queue.dev/kube-queue/test/harness"
)

// tenancy is a managed namespace whose administrator is a user named tenant. The tenant has only the role admin,
// which includes the jobs of the training operator. The jobs "running" and "resizable" use its whole quota. The job
// "waiting" waits.
type tenancy struct {
	*harness.Env
	t *testing.T
	// elsewhere is a namespace that is not managed.
	elsewhere *harness.Env
}

// attack is a kubectl command by which the tenant tries to run a job without quota.
type attack struct {
	name string
	// args and stdin are the input of kubectl. In both, JOB is replaced with a name that no other attack uses,
	// NAMESPACE with the namespace, UID-x with the UID of the object x, and UNIT-x with the unit of the job x.
	args, stdin string
	// as is the user, unless it is the tenant.
	as string
	// refused is a part of the refusal message, and advice a part that says what to do instead. Both are empty if the
	// request is accepted and the job waits. The API server's own refusals have no advice.
	refused, advice string
	// dry: the request is accepted but creates nothing.
	dry bool
}

// large is the beginning of a Job of 8 CPUs, which exceeds the quota. It is not marked.
func large(metadata, spec string) string {
	return fmt.Sprintf(`{apiVersion: batch/v1, kind: Job, metadata: {name: JOB%s}, spec: {%stemplate: {spec: {
		restartPolicy: Never, containers: [{name: main, image: busybox, resources: {requests: {cpu: "8"}}}]}}}}`, metadata, spec)
}

func largeTraining(kind, replicas, container, runPolicy string) string {
	return fmt.Sprintf(`{apiVersion: kubeflow.org/v1, kind: %s, metadata: {name: JOB}, spec: {%s%s: {Worker: {replicas: 8, template: {spec: {
		containers: [{name: %s, image: busybox, resources: {requests: {cpu: "1"}}}]}}}}}}`, kind, runPolicy, replicas, container)
}

func ownedByTenants(apiVersion, kind, name string) string {
	return fmt.Sprintf(`, ownerReferences: [{apiVersion: %s, kind: %s, name: %s, uid: UID-%s, controller: true}]`, apiVersion, kind, name, name)
}

const (
	onlyStarts  = "only kube-queue starts a"
	leaveIt     = "kube-queue starts the"
	cannotGrow  = "cannot grow or change"
	createAgain = "and create it again"
	forbidden   = `User "tenant" cannot`
)

// attacks returns the attacks. All are repeated while kube-queue is down.
func attacks() []attack {
	patch := func(object, patch string) string { return "patch " + object + " --type=merge -p " + patch }
	return []attack{
		{name: "a job without a mark", args: "create -f -", stdin: large("", "")},
		{name: "a job that is explicitly not suspended", args: "create -f -", stdin: large("", "suspend: false, ")},
		{name: "a mark of another spelling", args: "create -f -", stdin: large(`, annotations: {scheduling.x-k8s.io/suspend: "False"}`, "suspend: false, ")},
		{name: "a server-side apply that owns the suspend field", args: "apply --server-side --force-conflicts -f -", stdin: large("", "suspend: false, ")},
		{name: "a copy of a released job", args: "create -f -", stdin: large(`, annotations: {scheduling.x-k8s.io/suspend: "false", kube-queue/released: "1"}`, "suspend: false, ")},
		{name: "a job that claims to be no part of another", args: "create -f -", stdin: large(`, annotations: {kube-queue/not-part-of: x, kube-queue/managed: "false"}`, "")},
		{name: "owned by a ConfigMap", args: "create -f -", stdin: large(ownedByTenants("v1", "ConfigMap", "owner"), "")},
		{name: "owned by a waiting job", args: "create -f -", stdin: large(ownedByTenants("batch/v1", "Job", "waiting"), "")},
		{name: "owned by a running job", args: "create -f -", stdin: large(ownedByTenants("kubeflow.org/v1", "PyTorchJob", "resizable"), "")},
		{name: "owned by a JobSet that does not exist", args: "create -f -", stdin: large(ownedByTenants("jobset.x-k8s.io/v1alpha2", "JobSet", "owner"), "")},
		{name: "by a ServiceAccount with the name of that of kube-queue", args: "create -f -", stdin: large("", "suspend: false, "), as: "system:serviceaccount:NAMESPACE:job-extensions"},
		{name: "with a generated name", args: "create -f -", stdin: strings.Replace(large("", "suspend: false, "), "name: JOB", "generateName: JOB-", 1)},
		{name: "with a generated name and a bypass", args: "create -f -", stdin: strings.Replace(large(`, annotations: {kube-queue/bypass: "true"}`, ""), "name: JOB", "generateName: JOB-", 1), refused: `requires the verb "bypass"`, advice: "ask an administrator"},
		{name: "a dry run", args: "create --dry-run=server -f -", stdin: large("", "suspend: false, "), dry: true},
		{name: "a dry run with a bypass", args: "create --dry-run=server -f -", stdin: large(`, annotations: {kube-queue/bypass: "true"}`, ""), refused: `requires the verb "bypass"`, advice: "ask an administrator"},
		{name: "with counts of a release with fewer pods", args: "create -f -", stdin: large(`, annotations: {kube-queue/min-count: main=1, kube-queue/original-count: main=8, kube-queue/admitted-count: main=1}`, "suspend: false, ")},
		{name: "for another queue", args: "create -f -", stdin: large(", labels: {kueue.x-k8s.io/queue-name: x}", ""), refused: "to another queue", advice: "Remove the label"},
		{name: "for another controller", args: "create -f -", stdin: large("", "managedBy: example.com/mine, "), refused: onlyStarts, advice: leaveIt},
		{name: "with a bypass", args: "create -f -", stdin: large(`, annotations: {kube-queue/bypass: "true"}`, ""), refused: `requires the verb "bypass"`, advice: "ask an administrator"},
		{name: "with a finalizer that keeps its pods", args: "create -f -", stdin: large(", finalizers: [orphan]", ""), refused: "finalizer orphan", advice: "Remove the finalizer"},
		{name: "a TFJob without a run policy", args: "create -f -", stdin: largeTraining("TFJob", "tfReplicaSpecs", "tensorflow", "")},
		{name: "a PyTorchJob that is not suspended", args: "create -f -", stdin: largeTraining("PyTorchJob", "pytorchReplicaSpecs", "pytorch", "runPolicy: {suspend: false}, ")},

		{name: "unsuspend the waiting job", args: patch("job waiting", `{"spec":{"suspend":false}}`)},
		{name: "remove the annotations of the waiting job", args: patch("job waiting", `{"metadata":{"annotations":null},"spec":{"suspend":null}}`)},
		{name: "JSON patch of the waiting job", args: `patch job waiting --type=json -p [{"op":"remove","path":"/metadata/annotations"},{"op":"replace","path":"/spec/suspend","value":false}]`},
		{name: "take the suspend field over", args: "apply --server-side --force-conflicts --field-manager=mine -f -", stdin: `{apiVersion: batch/v1, kind: Job, metadata: {name: waiting}, spec: {suspend: false}}`},
		{name: "mark the waiting job false and unsuspend it", args: patch("job waiting", `{"metadata":{"annotations":{"scheduling.x-k8s.io/suspend":"false"}},"spec":{"suspend":false}}`), refused: "keeps the annotation", advice: "Delete the Job"},
		{name: "write that the waiting job was released", args: patch("job waiting", `{"metadata":{"annotations":{"kube-queue/released":"1"}},"spec":{"suspend":false}}`)},
		{name: "a dry run that unsuspends the waiting job", args: "patch job waiting --dry-run=server --type=merge -p " + `{"spec":{"suspend":false}}`},
		{name: "a smaller count of the waiting job", args: patch("job waiting", `{"metadata":{"annotations":{"kube-queue/min-count":"main=1","kube-queue/admitted-count":"main=1"}},"spec":{"suspend":false}}`)},
		{name: "nodes for the waiting job", args: patch("job waiting", `{"metadata":{"annotations":{"provreq.kube-queue/maxRunDurationSeconds":"1","kube-queue/pod-annotations":"autoscaling.x-k8s.io/consume-provisioning-request=main"}},"spec":{"suspend":false}}`)},
		{name: "give the waiting job to a controller", args: patch("job waiting", `{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"owner","uid":"UID-owner","controller":true}]}}`), refused: "owners of a Job", advice: createAgain},
		{name: "give the waiting job to another queue", args: patch("job waiting", `{"metadata":{"labels":{"kueue.x-k8s.io/queue-name":"x"}}}`), refused: "to another queue", advice: "Remove the label"},
		{name: "let the waiting job bypass the queue", args: patch("job waiting", `{"metadata":{"annotations":{"kube-queue/bypass":"true"}},"spec":{"suspend":false}}`), refused: `requires the verb "bypass"`, advice: "ask an administrator"},

		{name: "more pods of the running job", args: patch("job running", `{"spec":{"parallelism":8}}`), refused: cannotGrow, advice: createAgain},
		{name: "more workers of the running job", args: patch("pytorchjob resizable", `{"spec":{"pytorchReplicaSpecs":{"Worker":{"replicas":8}}}}`), refused: cannotGrow, advice: createAgain},
		{name: "larger pods of the running job", args: `patch pytorchjob resizable --type=json -p [{"op":"replace","path":"/spec/pytorchReplicaSpecs/Worker/template/spec/containers/0/resources/requests/cpu","value":"8"}]`, refused: cannotGrow, advice: createAgain},
		{name: "an elastic policy for the running job", args: patch("pytorchjob resizable", `{"spec":{"elasticPolicy":{"maxReplicas":8}}}`), refused: cannotGrow, advice: createAgain},
		{name: "scale the running job", args: "scale pytorchjob resizable --replicas=8", refused: "cannot grow beyond", advice: createAgain},
		{name: "delete the running job and keep its pods", args: "delete job running --cascade=orphan", refused: "must delete its pods too", advice: "Background or Foreground"},
		{name: "delete the running job with the defaults of the API", args: "delete --raw /apis/batch/v1/namespaces/NAMESPACE/jobs/running", refused: "must delete its pods too", advice: "Background or Foreground"},
		{name: "delete all jobs with the defaults of the API", args: "delete --raw /apis/batch/v1/namespaces/NAMESPACE/jobs", refused: "must delete its pods too", advice: "Background or Foreground"},
		{name: "a finalizer that keeps the pods of the running job", args: patch("job running", `{"metadata":{"finalizers":["orphan"]}}`), refused: "finalizer orphan", advice: "Remove the finalizer"},

		{name: "take the pod off the running job", args: "patch pod POD-running --type=merge -p " + takenOff, refused: "owners of a Pod", advice: createAgain},
		{name: "take the labels off the pod of the running job", args: patch("pod POD-running", `{"metadata":{"labels":null}}`), refused: "labels that show to which job", advice: "Leave them"},
		{name: "give the pod of the running job to a ConfigMap", args: patch("pod POD-running", `{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"owner","uid":"UID-owner","controller":true}]}}`), refused: "owners of a Pod", advice: createAgain},

		{name: "a unit for a job", args: "create -f -", stdin: `{apiVersion: scheduling.x-k8s.io/v1alpha1, kind: QueueUnit, metadata: {name: JOB}, spec: {consumerRef: {apiVersion: batch/v1, kind: Job, name: waiting}}}`, refused: "only job-extensions creates the QueueUnit", advice: "set annotation"},
		{name: "a smaller request in the unit", args: patch("queueunit UNIT-waiting", `{"spec":{"resource":{"cpu":"1m"}}}`), refused: "only job-extensions changes the spec", advice: "change the Job instead"},
		{name: "an admission in the unit", args: "patch queueunit UNIT-waiting --subresource=status --type=merge -p " + `{"status":{"phase":"Dequeued","attempts":1}}`, refused: "only kube-queue writes the status", advice: "change the Job instead"},
		{name: "a smaller request in the unit, by server-side apply", args: "apply --server-side --force-conflicts --field-manager=mine -f -", stdin: `{apiVersion: scheduling.x-k8s.io/v1alpha1, kind: QueueUnit, metadata: {name: UNIT-waiting}, spec: {resource: {cpu: 1m}}}`, refused: "only job-extensions changes the spec", advice: "change the Job instead"},
		{name: "an admission in the unit, by server-side apply", args: "apply --server-side --force-conflicts --field-manager=mine --subresource=status -f -", stdin: `{apiVersion: scheduling.x-k8s.io/v1alpha1, kind: QueueUnit, metadata: {name: UNIT-waiting}, status: {phase: Dequeued, attempts: 1}}`, refused: "only kube-queue writes the status", advice: "change the Job instead"},
		{name: "delete the unit of the running job", args: "delete queueunit UNIT-running", refused: "the QueueUnit holds quota", advice: "delete or suspend the Job"},

		{name: "delete the namespace", args: "delete namespace NAMESPACE", refused: forbidden},
		{name: "take the label off the namespace", args: "label namespace NAMESPACE kube-queue/managed-", refused: forbidden},
		{name: "bind the role that may bypass the queue", args: "create rolebinding JOB --clusterrole=kube-queue-bypass --user=tenant", refused: "attempting to grant RBAC permissions not currently held"},
		{name: "create a role that may bypass the queue", args: "create role JOB --verb=bypass --resource=queueunits.scheduling.x-k8s.io", refused: "attempting to grant RBAC permissions not currently held"},
		{name: "delete the policy", args: "delete validatingadmissionpolicy kube-queue-fence-job", refused: forbidden},
		{name: "more quota", args: "-n kube-system " + patch("elasticquotatree elasticquotatree", `{"spec":{"root":{"max":{"cpu":"100"}}}}`), refused: forbidden},
		{name: "write that the running job has ended", args: "patch job running --subresource=status --type=merge -p " + `{"status":{"conditions":[{"type":"Complete","status":"True"}]}}`, refused: forbidden},
	}
}

// A tenant with all rights in one managed namespace cannot run anything without quota, whether kube-queue is running
// or down.
func TestATenantDoesNotRunJobsWithoutQuota(t *testing.T) {
	l := suite.Env(t, "tenant")
	controller, extensions := suite.Both(t, enabled)
	n := &tenancy{Env: l, t: t, elsewhere: suite.Part(t, "tenant-elsewhere")}
	n.prepare()

	t.Run("kube-queue runs", func(t *testing.T) { n.attackAll(t, "up") })
	n.expectOnlyAdmitted("up")
	controller.Stop()
	extensions.Stop()
	t.Run("kube-queue is down", func(t *testing.T) { n.attackAll(t, "down") })
	n.expectOnlyAdmitted("down")
	n.othersWork()

	controller.Start()
	extensions.Start()
	n.expectCounted()
}

// prepare gives the tenant its rights and starts its jobs.
func (n *tenancy) prepare() {
	n.Manage()
	n.ApplyAsIs(`{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: e2e-training-admin, labels: {rbac.authorization.k8s.io/aggregate-to-admin: "true"}},
		rules: [{apiGroups: [kubeflow.org], resources: ["*"], verbs: ["*"]}]}`)
	n.t.Cleanup(func() {
		_, err := suite.Kubectl(context.Background(), "delete", "clusterrole", "e2e-training-admin", "--ignore-not-found")
		harness.Must(n.t, err)
	})
	_, err := suite.Kubectl(n.t.Context(), "-n", n.Namespace, "create", "rolebinding", "tenant", "--clusterrole=admin",
		"--user=tenant", "--serviceaccount="+n.Namespace+":job-extensions")
	harness.Must(n.t, err)
	harness.Eventually(n.t, time.Minute, "the tenant has its rights", func() (bool, string) {
		out, err := suite.Kubectl(n.t.Context(), "auth", "can-i", "create", "pytorchjobs.kubeflow.org", "-n", n.Namespace, "--as=tenant")
		return err == nil, fmt.Sprint(out, err)
	})
	n.Tree(`{cpu: "3"}`)
	n.Apply("{apiVersion: v1, kind: ConfigMap, metadata: {name: owner}}\n---\n" +
		harness.Job{Name: "running", CPU: "2", Completions: 8, Runs: harness.UntilFinished}.String() +
		fmt.Sprintf(`{apiVersion: kubeflow.org/v1, kind: PyTorchJob, metadata: {name: resizable}, spec: {pytorchReplicaSpecs: {Worker: {replicas: 1, template: {
			metadata: {annotations: {%s}}, spec: {containers: [{name: pytorch, image: busybox, resources: {requests: {cpu: "1"}}}]}}}}}}`, harness.PodAnnotations(harness.UntilFinished, false)))
	n.WaitForPhase("Job", "running", "Running")
	n.WaitForPhase("PyTorchJob", "resizable", "Running")
	n.Apply(harness.Job{Name: "waiting", CPU: "8"}.String())
	n.WaitForReason("Job", "waiting", "ExceedsMaxQuota")
}

// attackAll makes all attacks.
func (n *tenancy) attackAll(t *testing.T, round string) {
	for number, a := range attacks() {
		t.Run(a.name, func(t *testing.T) { n.attack(t, fmt.Sprintf("%s-%02d", round, number), a) })
	}
}

func (n *tenancy) attack(t *testing.T, name string, a attack) {
	replacer := strings.NewReplacer("JOB", name, "NAMESPACE", n.Namespace,
		"UID-owner", n.uid(harness.ConfigMaps, "owner"), "UID-waiting", n.uid(harness.Jobs, "waiting"), "UID-resizable", n.uid(harness.PyTorchJobs, "resizable"),
		"UNIT-waiting", n.Unit("Job", "waiting").Name, "UNIT-running", n.Unit("Job", "running").Name, "POD-running", n.Pods("running")[0].Name)
	if a.as == "" {
		a.as = "tenant"
	}
	args := append([]string{"-n", n.Namespace, "--as=" + replacer.Replace(a.as)}, strings.Fields(replacer.Replace(a.args))...)
	_, err := suite.KubectlWith(t.Context(), replacer.Replace(a.stdin), args...)
	if a.refused != "" {
		switch {
		case err == nil:
			t.Errorf("accepted; want it refused with %q", a.refused)
		case !strings.Contains(err.Error(), a.refused) || !strings.Contains(err.Error(), a.advice):
			t.Errorf("want it refused with %q and %q:\n%v", a.refused, a.advice, err)
		}
		return
	}
	if err != nil {
		t.Error(err)
	}
	if a.dry {
		if object := n.find(harness.Jobs, name); object != nil {
			t.Errorf("there is a Job %s", object.GetName())
		}
		return
	}
	if a.stdin == "" || !strings.Contains(a.stdin, "JOB") {
		name = "waiting"
	}
	for _, resource := range []schema.GroupVersionResource{harness.Jobs, harness.TFJobs, harness.PyTorchJobs} {
		object := n.find(resource, name)
		if object == nil {
			continue
		}
		suspend, _, _ := unstructured.NestedBool(object.Object, "spec", "suspend")
		ofPolicy, _, _ := unstructured.NestedBool(object.Object, "spec", "runPolicy", "suspend")
		if !suspend && !ofPolicy {
			t.Errorf("%s %s is not suspended", object.GetKind(), name)
		}
		if mark := object.GetAnnotations()["scheduling.x-k8s.io/suspend"]; mark != "true" && name != "waiting" {
			t.Errorf("%s %s has mark %q and is never started", object.GetKind(), name, mark)
		}
		return
	}
	t.Errorf("there is no job %s", name)
}

// find returns the object with this name, or with a name generated from it, or nil.
func (n *tenancy) find(resource schema.GroupVersionResource, name string) *unstructured.Unstructured {
	list, err := n.Dynamic.Resource(resource).Namespace(n.Namespace).List(n.t.Context(), metav1.ListOptions{})
	harness.Must(n.t, err)
	for _, object := range list.Items {
		if belongsTo(object.GetName()+"-", name) {
			return &object
		}
	}
	return nil
}

func (n *tenancy) uid(resource schema.GroupVersionResource, name string) string {
	return string(n.Object(resource, name).GetUID())
}

// expectOnlyAdmitted fails if pods exist that were not admitted. A plain job in another namespace shows that the
// controllers of the jobs have seen all older jobs.
func (n *tenancy) expectOnlyAdmitted(round string) {
	n.t.Helper()
	n.runsElsewhere("seen-" + round)
	harness.Never(n.t, time.Second, "a pod runs without quota", func() (bool, string) {
		for _, pod := range n.allPods() {
			if !belongsTo(pod, "running") && !belongsTo(pod, "resizable") {
				return true, pod
			}
		}
		return false, ""
	})
	if pods := n.allPods(); len(pods) != 2 {
		n.t.Errorf("want the two pods that were admitted, not %v", pods)
	}
}

func belongsTo(pod, job string) bool { return strings.HasPrefix(pod, job+"-") }

func (n *tenancy) allPods() (names []string) {
	pods, err := n.Kube.CoreV1().Pods(n.Namespace).List(n.t.Context(), metav1.ListOptions{})
	harness.Must(n.t, err)
	for _, pod := range pods.Items {
		names = append(names, pod.Name)
	}
	return names
}

// runsElsewhere runs unmarked jobs in another namespace.
func (n *tenancy) runsElsewhere(name string) {
	n.t.Helper()
	n.elsewhere.Apply(harness.Job{Name: name, CPU: "1", Runs: time.Second, Unheld: true}.String() + harness.TFJob{Name: name, Servers: 1, Workers: 1, CPU: "1", Runs: time.Second, Unheld: true}.String())
	harness.Eventually(n.t, time.Minute, name+" is complete", func() (bool, string) { return n.elsewhere.HasCondition(harness.Jobs, name, "Complete"), "it is not" })
	n.elsewhere.WaitForState(harness.TFJobs, name, "Succeeded")
}

// othersWork changes, orphans and deletes unmarked jobs elsewhere while kube-queue is down.
func (n *tenancy) othersWork() {
	n.t.Helper()
	for _, command := range []string{
		"label job seen-down a=b", "annotate tfjob seen-down a=b",
		"delete --raw /apis/batch/v1/namespaces/tenant-elsewhere/jobs/seen-down", "delete tfjob seen-down --cascade=orphan",
	} {
		_, err := suite.Kubectl(n.t.Context(), append([]string{"-n", n.elsewhere.Namespace}, strings.Fields(command)...)...)
		harness.Must(n.t, err)
	}
}

// expectCounted checks an attack that is not refused: the pods of the running job are counted, whatever is written to
// them and to its status.
func (n *tenancy) expectCounted() {
	n.t.Helper()
	_, err := suite.Kubectl(n.t.Context(), "-n", n.Namespace, "--as=tenant", "patch", "pytorchjob", "resizable", "--subresource=status", "--type=merge",
		"-p", `{"status":{"conditions":[{"type":"Succeeded","status":"True","reason":"JobSucceeded","message":"","lastTransitionTime":"2026-01-01T00:00:00Z","lastUpdateTime":"2026-01-01T00:00:00Z"}],"completionTime":"2026-01-01T00:00:00Z"}}`)
	harness.Must(n.t, err)
	n.Apply(harness.Job{Name: "next", CPU: "1", Runs: time.Second}.String())
	harness.Eventually(n.t, time.Minute, "the next job is decided about", func() (bool, string) { // it starts if the operator has deleted the pods
		unit := n.Unit("Job", "next")
		return unit != nil && (unit.Status.Reason != "" || !unit.Status.Phase.Waits()), "it is not"
	})
	harness.Never(n.t, 2*time.Second, "the next job runs beside the pods of a job that claims to have ended", func() (bool, string) {
		runs, running := false, false
		for _, pod := range n.allPods() {
			runs = runs || belongsTo(pod, "next")
			running = running || belongsTo(pod, "resizable")
		}
		return runs && running, "it does"
	})
}

// takenOff is a patch that removes everything in a pod that shows which job it belongs to.
const takenOff = `{"metadata":{"ownerReferences":null,"labels":null,"finalizers":null}}`

// A user detaches a pod from its job, so the operator creates another one. Both are charged.
func TestAPodThatIsTakenOffItsJobStaysCharged(t *testing.T) {
	l := suite.Env(t, "taken-off")
	suite.Both(t, enabled)
	l.Tree(`{cpu: "2"}`)
	l.Apply(harness.Job{Name: "running", CPU: "1", Completions: 8, Runs: harness.UntilFinished}.String())
	l.WaitForPhase("Job", "running", "Running")
	first := l.Pods("running")[0].Name
	l.Patch(harness.Pods, first, takenOff)
	harness.Eventually(t, time.Minute, "the Job has another pod", func() (bool, string) {
		pods := l.Pods("running")
		return len(pods) == 2, fmt.Sprint(len(pods), " pods")
	})
	l.Apply(harness.Job{Name: "next", CPU: "1", Runs: time.Second}.String())
	waits := l.WaitForReason("Job", "next", wellknown.ReasonQuotaExceeded)
	if want := "requested 1, used 2 of max 2"; !strings.Contains(waits.Status.Message, want) {
		t.Errorf("the message is %q, want %q", waits.Status.Message, want)
	}
	l.Delete(harness.Pods, first)
	l.WaitForPhase("Job", "next", "Dequeued", "Running", "Succeeded")
	l.Delete(harness.Jobs, "running")
	l.Delete(harness.Jobs, "next")
	l.ExpectFree()
}

// The fence refuses nothing that the deletion of a namespace needs.
func TestAManagedNamespaceIsDeletedWithItsRunningJobs(t *testing.T) {
	l := suite.Env(t, "fenced-gone")
	suite.Both(t, enabled)
	l.Manage()
	l.Tree(`{cpu: "3"}`)
	l.Apply(harness.Job{Name: "running", CPU: "1", Runs: harness.UntilFinished}.String() +
		harness.TFJob{Name: "train", Servers: 1, Workers: 1, CPU: "1", Runs: harness.UntilFinished}.String() +
		harness.Job{Name: "waiting", CPU: "8"}.String())
	l.WaitForPhase("Job", "running", "Running")
	l.WaitForPhase("TFJob", "train", "Running")
	l.WaitForReason("Job", "waiting", "ExceedsMaxQuota")
	_, err := suite.Kubectl(t.Context(), "delete", "namespace", l.Namespace, "--timeout=2m") // waits until its pods are gone
	harness.Must(t, err)
	l.ExpectFree()
}
