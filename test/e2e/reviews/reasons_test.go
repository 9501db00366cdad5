package reviews

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/util/retry"

	schedulingv1alpha1 "kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	visibilityv1alpha1 "kube-queue.dev/kube-queue/apis/visibility/v1alpha1"
	"kube-queue.dev/kube-queue/test/audit"
	"kube-queue.dev/kube-queue/test/clustertest"
	"kube-queue.dev/kube-queue/test/harness"
	"kube-queue.dev/kube-queue/test/podrunner"
)

// story is a job that waits for a reason. Following the remedies of its review admits the job.
type story struct {
	reason string
	// name is the name of the story if its reason has several. In lower case, it is the namespace.
	name string
	// node is the rest of the namespace's node in the quota tree: its max, and its min if any. If it is empty, the
	// namespace has no node.
	node string
	// prepare makes the Job named waiting wait.
	prepare func(*scene)
	// says is a part of the message of an entry of wouldAdmit, and does carries it out. If does is nil, the entry is
	// a command or an increase of quota, which any reader can carry out.
	says string
	does func(*scene, visibilityv1alpha1.Remedy)
}

// title is the name of the story, and namespace its namespace.
func (s *story) title() string     { return cmp.Or(s.name, s.reason) }
func (s *story) namespace() string { return strings.ToLower(s.title()) }

// scene is a story in its namespace.
type scene struct {
	*harness.Env
	t *testing.T
}

func (s *scene) queue() string { return "root-" + s.Namespace }

// job is a Job, with further parts of its manifest.
type job struct{ name, cpu, annotations, labels, spec, podAnnotations, podSpec string }

// create creates a marked Job in the namespace.
func (s *scene) create(j job) {
	s.Apply(fmt.Sprintf(`{apiVersion: batch/v1, kind: Job, metadata: {name: %s, annotations: {scheduling.x-k8s.io/suspend: "true", %s}, labels: {%s}}, spec: {%stemplate: {
		metadata: {annotations: {%s}}, spec: {%srestartPolicy: Never, containers: [{name: main, image: busybox, resources: {requests: {cpu: %q}}}]}}}}`,
		j.name, j.annotations, j.labels, j.spec, j.podAnnotations, j.podSpec, j.cpu))
}

func (s *scene) job(name, cpu string) { s.create(job{name: name, cpu: cpu}) }

// strandedJob creates a Job whose pods no kubelet runs, as on a lost node.
func (s *scene) strandedJob(name, cpu string) {
	s.create(job{name: name, cpu: cpu, podAnnotations: podrunner.Annotation + ": nobody"})
	s.kubectlLater("delete", "jobs,pods", "--all", "-n", s.Namespace, "--force", "--grace-period=0")
	s.WaitForPhase("Job", name, schedulingv1alpha1.PhaseDequeued, schedulingv1alpha1.PhaseRunning)
}

// unreadyJob creates a Job whose pods need a node with a label.
func (s *scene) unreadyJob(name, label string) {
	s.create(job{name: name, cpu: "1", podSpec: "nodeSelector: {" + label + ": present}, "})
}

// evictsLower allows jobs of the queue with a higher priority to evict those with a lower one.
func (s *scene) evictsLower() {
	s.PatchQueue(s.queue(), `{"spec":{"preemption":{"withinQueue":"LowerPriority","minRunTime":"0s"}}}`)
}

// borrowers are jobs that borrow 3 cpu.
var borrowers = []string{"one", "two", "three"}

func (s *scene) borrow() {
	for _, name := range borrowers {
		s.job(name, "1")
		s.runs(name)
	}
}

// kubectlLater runs kubectl at the end of the story.
func (s *scene) kubectlLater(args ...string) {
	s.t.Cleanup(func() { // the context of the test is already done
		if out, err := suite.Kubectl(context.Background(), args...); err != nil {
			s.t.Errorf("kubectl %v: %v\n%s", args, err, out)
		}
	})
}

// refuseChanges makes the API server refuse changes to the spec of units in the namespace. The job has a unit.
func (s *scene) refuseChanges(job string) {
	s.t.Helper()
	s.Apply(`
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: ` + s.Namespace + `}
spec:
  matchConstraints:
    namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: ` + s.Namespace + `}}
    resourceRules: [{apiGroups: [scheduling.x-k8s.io], apiVersions: [v1alpha1], operations: [UPDATE], resources: [queueunits]}]
  validations: [{expression: object.spec == oldObject.spec, message: the spec stays as it is}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: ` + s.Namespace + `}
spec: {policyName: ` + s.Namespace + `, validationActions: [Deny]}
`)
	s.kubectlLater("delete", "validatingadmissionpolicy", s.Namespace)
	s.kubectlLater("delete", "validatingadmissionpolicybinding", s.Namespace, "--ignore-not-found")
	harness.Eventually(s.t, time.Minute, "changes are refused", func() (bool, string) {
		out, err := suite.Kubectl(s.t.Context(), "patch", "queueunit", s.Unit("Job", job).Name, "-n", s.Namespace, "--type=merge", "-p", `{"spec":{"priority":7}}`,
			"--dry-run=server", "--as=system:serviceaccount:"+clustertest.Namespace+":"+harness.Extensions)
		return err != nil && strings.Contains(err.Error(), "the spec stays as it is"), fmt.Sprint(out, err)
	})
}

func (s *scene) runs(name string) { s.WaitForPhase("Job", name, schedulingv1alpha1.PhaseRunning) }

// kubectl runs kubectl in the namespace.
func (s *scene) kubectl(args ...string) {
	s.t.Helper()
	if out, err := suite.Kubectl(s.t.Context(), append(args, "-n", s.Namespace)...); err != nil {
		s.t.Fatalf("kubectl %v: %v\n%s", args, err, out)
	}
}

// finalizers replaces the finalizers of the unit of a job. Only job-extensions may add any.
func (s *scene) finalizers(job, list string, flags ...string) {
	s.t.Helper()
	s.kubectl(append([]string{"patch", "queueunit", s.Unit("Job", job).Name, "--type=merge", "-p", `{"metadata":{"finalizers":` + list + `}}`}, flags...)...)
}

// check writes the state of the admission check of a job.
func (s *scene) check(job string, state schedulingv1alpha1.CheckState) {
	s.t.Helper()
	s.Decide(job, "nodes", state, "there is no node")
}

// changeTree changes the root of the tree. Other stories change other nodes at the same time.
func (s *scene) changeTree(change func(root map[string]any) error) {
	s.t.Helper()
	resource := s.Dynamic.Resource(harness.Trees).Namespace("kube-system")
	often := retry.DefaultRetry
	often.Steps, often.Duration = 100, 50*time.Millisecond
	harness.Must(s.t, retry.RetryOnConflict(often, func() error {
		tree, err := resource.Get(s.t.Context(), "elasticquotatree", metav1.GetOptions{})
		if err != nil {
			return err
		}
		root, _, _ := unstructured.NestedMap(tree.Object, "spec", "root")
		if err := change(root); err != nil {
			return err
		}
		if err := unstructured.SetNestedMap(tree.Object, root, "spec", "root"); err != nil {
			return err
		}
		_, err = resource.Update(s.t.Context(), tree, metav1.UpdateOptions{})
		return err
	}))
}

// raise writes the limits of a remedy to the tree.
func (s *scene) raise(remedy visibilityv1alpha1.Remedy) {
	s.t.Helper()
	s.changeTree(func(root map[string]any) error {
		for _, change := range remedy.Changes {
			if !raised(root, "", change) {
				return fmt.Errorf("the tree has no %s of %s in %s that is %s", change.Field, change.Resource, change.Quota, change.From)
			}
		}
		return nil
	})
}

// raised changes the node at the path, and reports whether it had the previous amount.
func raised(node map[string]any, above string, change visibilityv1alpha1.QuotaChange) bool {
	path := strings.TrimPrefix(above+"/"+fmt.Sprint(node["name"]), "/")
	if path == change.Quota {
		field, _ := node[change.Field].(map[string]any)
		if field == nil || fmt.Sprint(field[change.Resource]) != change.From {
			return false
		}
		field[change.Resource] = change.To
		return true
	}
	children, _ := node["children"].([]any)
	return slices.ContainsFunc(children, func(child any) bool { return raised(child.(map[string]any), path, change) })
}

// follow runs the command of a remedy or raises the quota.
func (s *scene) follow(remedy visibilityv1alpha1.Remedy) {
	s.t.Helper()
	switch {
	case remedy.Command != "":
		cmd := exec.CommandContext(s.t.Context(), "sh", "-c", remedy.Command)
		cmd.Env = append(cmd.Environ(), "PATH="+filepath.Dir(suite.KubectlPath)+":/usr/bin:/bin", "KUBECONFIG="+suite.Kubeconfig)
		if out, err := cmd.CombinedOutput(); err != nil {
			s.t.Fatalf("%s: %v\n%s", remedy.Command, err, out)
		}
	case remedy.Type == visibilityv1alpha1.RaiseQuota:
		s.raise(remedy)
	default:
		s.t.Fatalf("nothing to follow: %s", remedy.Message)
	}
}

// lending is the rest of a node whose own jobs borrow the min of a child, and are not evicted for the child.
func lending(namespace string) string {
	return fmt.Sprintf(`max: {cpu: 4}, attributes: {kube-queue/reclaim: never}, children: [{name: %s-owner, namespaces: [%s], min: {cpu: 2}}]`, namespace, namespace)
}

// stories has the slowest ones first.
var stories = []story{
	{reason: "Backoff", node: "max: {cpu: 2}", says: "the unit is tried again at ", prepare: func(s *scene) {
		active := func(value string) {
			s.Patch(harness.Jobs, "waiting", `{"metadata":{"annotations":{"scheduling.x-k8s.io/active":"`+value+`"}}}`)
		}
		s.job("waiting", "1")
		for waits := false; !waits; {
			s.runs("waiting")
			active("false")
			s.WaitForPhase("Job", "waiting", schedulingv1alpha1.PhaseEnqueued)
			active("true")
			harness.Eventually(s.t, time.Minute, "the job runs again or waits in backoff", func() (bool, string) {
				status := s.Unit("Job", "waiting").Status
				waits = status.Reason == "Backoff"
				return waits || status.Phase == schedulingv1alpha1.PhaseRunning, fmt.Sprint(status.Phase, status.Reason)
			})
		}
	}, does: func(*scene, visibilityv1alpha1.Remedy) {}},
	{reason: "Backoff", name: "BackoffOfPods", node: "max: {cpu: 2}", says: "; after its release, all its pods must be ready within 5s", prepare: func(s *scene) {
		s.PatchQueue(s.queue(), `{"spec":{"podsReadyTimeout":"5s"}}`)
		s.unreadyJob("waiting", s.Namespace)
	}, does: func(s *scene, _ visibilityv1alpha1.Remedy) {
		s.kubectlLater("label", "nodes", "--all", s.Namespace+"-")
		s.kubectl("label", "nodes", "--all", s.Namespace+"=present")
	}},
	{reason: "Backoff", name: "BackoffOfACheck", node: "max: {cpu: 2}", says: "; its admission checks (nodes) then decide again", prepare: func(s *scene) {
		s.PatchQueue(s.queue(), `{"spec":{"admissionChecks":["nodes"]}}`)
		s.job("waiting", "1")
		s.check("waiting", "Retry")
	}, does: func(s *scene, _ visibilityv1alpha1.Remedy) { s.check("waiting", "Ready") }},
	{reason: "QuotaExceeded", name: "OverQuota", node: "max: {cpu: 4}", says: "raises max of cpu in quota root/overquota from 4 to 7", prepare: func(s *scene) {
		s.create(job{name: "first", cpu: "2", spec: "completions: 3, parallelism: 1, "})
		s.runs("first")
		s.Patch(harness.Jobs, "first", `{"spec":{"parallelism":3}}`)
		s.WaitForEvent("first", "OverQuota")
		s.job("waiting", "1")
	}},
	{reason: "Preempting", node: "max: {cpu: 3}", says: "stops, which is being evicted for it", prepare: func(s *scene) {
		s.evictsLower()
		s.strandedJob("first", "2")
		s.create(job{name: "waiting", cpu: "3", annotations: `scheduling.x-k8s.io/priority: "10"`})
	}, does: func(s *scene, remedy visibilityv1alpha1.Remedy) {
		if len(remedy.Units) != 1 || remedy.Units[0].Name != s.Unit("Job", "first").Name {
			s.t.Fatalf("the unit waits for %+v", remedy.Units)
		}
		s.kubectl("delete", "pods", "-l", "job-name=first", "--force", "--grace-period=0")
	}},
	{reason: "QuotaExceeded", name: "Kept", node: "max: {cpu: 3}", says: "raises max of cpu in quota root/kept from 3 to ", prepare: func(s *scene) {
		s.evictsLower()
		s.strandedJob("first", "2")
		s.create(job{name: "urgent", cpu: "3", annotations: `scheduling.x-k8s.io/priority: "10"`})
		s.WaitForReason("Job", "urgent", "Preempting")
		s.job("waiting", "1")
	}},
	{reason: "BorrowingPaused", node: lending("borrowingpaused"), says: "starts with what is guaranteed to its quota, and then 1 cpu is unused in quota root/borrowingpaused",
		prepare: func(s *scene) {
			s.borrow()
			s.create(job{name: "owed", cpu: "2", labels: `kube-queue/quota-name: borrowingpaused-owner`})
			s.WaitForReason("Job", "owed", "QuotaExceeded")
			s.job("waiting", "1")
		}, does: func(s *scene, remedy visibilityv1alpha1.Remedy) {
			if len(remedy.Units) != 1 || remedy.Units[0].Name != s.Unit("Job", "owed").Name {
				s.t.Fatalf("the unit waits for %+v", remedy.Units)
			}
			s.Delete(harness.Jobs, borrowers[0])
			s.runs("owed")
			s.Delete(harness.Jobs, borrowers[1])
		}},
	{reason: "QuotaExceeded", name: "Owed", node: lending("owed"), says: "raises max of cpu in quota root/owed from 4 to 5", prepare: func(s *scene) {
		s.borrow()
		s.create(job{name: "waiting", cpu: "2", labels: `kube-queue/quota-name: owed-owner`})
	}},
	{reason: "JobChanged", node: "max: {cpu: 4}", says: "job-extensions writes the new request into the unit", prepare: func(s *scene) {
		s.PatchQueue(s.queue(), `{"spec":{"admissionChecks":["nodes"]}}`)
		s.create(job{name: "waiting", cpu: "1", spec: "completions: 2, parallelism: 1, "})
		s.WaitForPhase("Job", "waiting", schedulingv1alpha1.PhaseReserved)
		s.refuseChanges("waiting")
		s.Patch(harness.Jobs, "waiting", `{"spec":{"parallelism":2}}`)
	}, does: func(s *scene, _ visibilityv1alpha1.Remedy) {
		s.kubectl("delete", "validatingadmissionpolicybinding", s.Namespace)
		s.check("waiting", "Ready")
	}},
	{reason: "QuotaExceeded", node: "max: {cpu: 2}", says: "an administrator raises max of cpu in quota root/quotaexceeded from 2 to 3", prepare: func(s *scene) {
		s.job("first", "2")
		s.runs("first")
		s.job("waiting", "1")
	}},
	{reason: "MaxJobs", node: "max: {cpu: 4, kube-queue/max-jobs: 1}", says: "raises max of kube-queue/max-jobs in quota root/maxjobs from 1 to 2", prepare: func(s *scene) {
		s.job("first", "1")
		s.runs("first")
		s.job("waiting", "1")
	}},
	{reason: "ExceedsMinQuota", node: "min: {cpu: 1}, max: {cpu: 4}", says: "raises min of cpu in quota root/exceedsminquota from 1 to 2", prepare: func(s *scene) {
		s.create(job{name: "waiting", cpu: "2", labels: `kube-queue/preemptible: "false"`})
	}},
	{reason: "ExceedsMaxQuota", node: "max: {cpu: 2}", says: "raises max of cpu in quota root/exceedsmaxquota from 2 to 3", prepare: func(s *scene) {
		s.job("waiting", "3")
	}},
	{reason: "Terminating", node: "max: {cpu: 2}", says: "remove the finalizer", prepare: func(s *scene) {
		s.job("first", "2")
		s.runs("first")
		s.job("waiting", "1")
		s.WaitForReason("Job", "waiting", "QuotaExceeded")
		s.finalizers("waiting", `["example.com/keep"]`, "--as="+audit.Extensions)
		s.kubectl("delete", "queueunit", s.Unit("Job", "waiting").Name, "--wait=false")
	}, does: func(s *scene, _ visibilityv1alpha1.Remedy) {
		s.Delete(harness.Jobs, "first")
		s.finalizers("waiting", "null")
	}},
	{reason: "AdmissionCheckRejected", node: "max: {cpu: 2}", says: "change the job as the message says", prepare: func(s *scene) {
		s.PatchQueue(s.queue(), `{"spec":{"admissionChecks":["nodes"]}}`)
		s.job("waiting", "1")
		s.check("waiting", "Rejected")
	}, does: func(s *scene, _ visibilityv1alpha1.Remedy) {
		s.PatchQueue(s.queue(), `{"spec":{"admissionChecks":null}}`)
		s.Delete(harness.Jobs, "waiting")
		s.job("waiting", "1")
	}},
	{reason: "NotAtFront", node: "max: {cpu: 2}", says: "that is enough for the unit ahead as well", prepare: func(s *scene) {
		s.PatchQueue(s.queue(), `{"spec":{"policy":"Block"}}`)
		s.job("first", "1")
		s.runs("first")
		s.job("second", "2")
		s.WaitForReason("Job", "second", "QuotaExceeded")
		s.job("waiting", "1")
	}},
	{reason: "QueueStopped", node: "max: {cpu: 2}", says: "an administrator resumes queue root-queuestopped", prepare: func(s *scene) {
		s.PatchQueue(s.queue(), `{"spec":{"stop":"Hold"}}`)
		s.job("waiting", "1")
	}},
	{reason: "Inactive", node: "max: {cpu: 2}", says: "set annotation scheduling.x-k8s.io/active of the job to \"true\"", prepare: func(s *scene) {
		s.create(job{name: "waiting", cpu: "1", annotations: `scheduling.x-k8s.io/active: "false"`})
	}, does: func(s *scene, _ visibilityv1alpha1.Remedy) {
		s.kubectl("annotate", "job", "waiting", "--overwrite", "scheduling.x-k8s.io/active=true")
	}},
	{reason: "SuspendedByUser", node: "max: {cpu: 2}", says: "set the suspend field of the job to false", prepare: func(s *scene) {
		s.job("waiting", "1")
		s.runs("waiting")
		s.kubectl("patch", "job", "waiting", "--type=merge", "-p", `{"spec":{"suspend":true}}`)
	}, does: func(s *scene, _ visibilityv1alpha1.Remedy) {
		s.kubectl("patch", "job", "waiting", "--type=merge", "-p", `{"spec":{"suspend":false}}`)
	}},
	{reason: "QuotaNotAllowed", node: "max: {cpu: 2}", says: "orrect or remove the label kube-queue/quota-name", prepare: func(s *scene) {
		s.create(job{name: "waiting", cpu: "1", labels: `kube-queue/quota-name: other`})
	}, does: func(s *scene, _ visibilityv1alpha1.Remedy) {
		s.kubectl("label", "job", "waiting", "kube-queue/quota-name-")
	}},
	{reason: "NoQuota", says: "add the namespace to a node of the ElasticQuotaTree", prepare: func(s *scene) {
		s.job("waiting", "1")
	}, does: func(s *scene, _ visibilityv1alpha1.Remedy) {
		s.changeTree(func(root map[string]any) error {
			children, _ := root["children"].([]any)
			root["children"] = append(children, map[string]any{"name": "added", "namespaces": []any{s.Namespace}})
			return nil
		})
	}},
	{reason: "InvalidRequest", node: "max: {cpu: 2}", says: "change the job as the message says", prepare: func(s *scene) {
		s.create(job{name: "waiting", cpu: "1", annotations: `scheduling.x-k8s.io/priority: "high"`})
	}, does: func(s *scene, _ visibilityv1alpha1.Remedy) {
		s.kubectl("annotate", "job", "waiting", "scheduling.x-k8s.io/priority-")
	}},
	{reason: "AdmissionCheckMissing", node: "max: {cpu: 2}", says: "an administrator creates AdmissionCheck absent", prepare: func(s *scene) {
		s.PatchQueue(s.queue(), `{"spec":{"admissionChecks":["absent"]}}`)
		s.job("waiting", "1")
	}, does: func(s *scene, _ visibilityv1alpha1.Remedy) {
		s.PatchQueue(s.queue(), `{"spec":{"admissionChecks":null}}`)
	}},
	{reason: "AdmissionCheckPending", node: "max: {cpu: 2}", says: "when all its admission checks are Ready", prepare: func(s *scene) {
		s.PatchQueue(s.queue(), `{"spec":{"admissionChecks":["nodes"]}}`)
		s.job("waiting", "1")
	}, does: func(s *scene, _ visibilityv1alpha1.Remedy) { s.check("waiting", "Ready") }},
	{reason: "WaitingForPods", node: "max: {cpu: 2}", says: "the pods of the job that queue root-waitingforpods has admitted last become ready, or the job ends", prepare: func(s *scene) {
		s.PatchQueue(s.queue(), `{"spec":{"podsReadyTimeout":"10m","blockUntilPodsReady":true}}`)
		s.unreadyJob("first", s.Namespace)
		s.WaitForPhase("Job", "first", schedulingv1alpha1.PhaseDequeued, schedulingv1alpha1.PhaseRunning)
		s.job("waiting", "1")
	}, does: func(s *scene, _ visibilityv1alpha1.Remedy) { s.Delete(harness.Jobs, "first") }},
}

// withoutTree and withInvalidTree are stories for a cluster without a valid quota tree.
var (
	withoutTree = story{reason: "NoQuota", name: "NoTree", says: "ask an administrator to create one that lists the namespace", prepare: func(s *scene) {
		s.job("waiting", "1")
	}, does: func(s *scene, _ visibilityv1alpha1.Remedy) { s.Tree(`{cpu: "1"}`) }}

	withInvalidTree = story{reason: "InvalidQuotaTree", node: "max: {cpu: 1}", prepare: func(s *scene) {
		_, err := suite.Kubectl(s.t.Context(), "-n", "kube-system", "delete", "elasticquotatree", "--all")
		harness.Must(s.t, err)
		s.job("waiting", "1")
		s.WaitForReason("Job", "waiting", "NoQuota") // earlier trees are forgotten
		s.Tree(`{cpu: "-4"}`)
	}, says: `an administrator corrects ElasticQuotaTree kube-system/elasticquotatree: root/team: max: cpu: -4 is negative; set it to 0 or more`}
)

// The sentence is what the unit shows, and the page of the reasons promises it. test/e2e has the story of a kind that
// is not queued, because that story restarts job-extensions.
func TestWhatWouldAdmitAJobForEachReason(t *testing.T) {
	env := suite.Env(t, "default")
	env.CreateCheck("nodes")
	start(t, env)
	promised := readPromises(t)
	all := append([]story{withoutTree, withInvalidTree}, stories...)
	for _, reason := range promised.reasons {
		if reason != "KindNotQueued" && !slices.ContainsFunc(all, func(s story) bool { return s.reason == reason }) {
			t.Errorf("no story is about %s", reason)
		}
	}
	run := func(s story) {
		t.Run(s.title(), func(t *testing.T) { play(&scene{suite.Part(t, s.namespace()), t}, s, promised) })
	}
	run(withoutTree)
	var nodes []string
	for _, s := range all {
		if s.node == "" {
			continue
		}
		nodes = append(nodes, fmt.Sprintf("{name: %s, namespaces: [%s], %s}", s.namespace(), s.namespace(), s.node))
	}
	invalid := withInvalidTree
	invalid.does = func(s *scene, _ visibilityv1alpha1.Remedy) { s.TreeOf(nodes...) }
	run(invalid)
	t.Run("stories", func(t *testing.T) {
		for _, s := range stories {
			t.Run(s.title(), func(t *testing.T) {
				t.Parallel()
				play(&scene{suite.Part(t, s.namespace()), t}, s, promised)
			})
		}
	})
}

func play(l *scene, s story, promised *promises) {
	l.t.Helper()
	s.prepare(l)
	var unit *schedulingv1alpha1.QueueUnit
	harness.Eventually(l.t, time.Minute, "the job waits because of "+s.reason, func() (bool, string) {
		unit = l.Unit("Job", "waiting")
		if unit == nil {
			return false, "it has no unit"
		}
		return string(unit.Status.Reason) == s.reason, string(unit.Status.Reason) + ": " + unit.Status.Message
	})
	var answer *visibilityv1alpha1.QueueUnitReviewStatus
	harness.Eventually(l.t, time.Minute, "the answer says what the unit shows", func() (bool, string) { // the answer may be from an earlier moment
		unit, answer = l.Unit("Job", "waiting"), why(l.t, l.Env, "", "waiting")
		shown, _, _ := strings.Cut(unit.Status.Message, " (at ") // the answer has its own time
		return string(answer.Reason) == s.reason && answer.Message == shown,
			fmt.Sprintf("the answer is %s: %s\nthe unit shows %s: %s", answer.Reason, answer.Message, unit.Status.Reason, unit.Status.Message)
	})
	if !promised.has(s.reason, answer.Message) {
		l.t.Errorf("the page of the reasons has no example like this message for %s: %s", s.reason, answer.Message)
	}
	at := slices.IndexFunc(answer.WouldAdmit, func(r visibilityv1alpha1.Remedy) bool { return strings.Contains(r.Message, s.says) })
	if at < 0 {
		text, _ := json.MarshalIndent(answer.WouldAdmit, "", " ")
		l.t.Fatalf("it would be admitted by\n%s\nwant %q", text, s.says)
	}
	if s.does == nil {
		l.follow(answer.WouldAdmit[at])
	} else {
		s.does(l, answer.WouldAdmit[at])
	}
	l.WaitForPhase("Job", "waiting", schedulingv1alpha1.PhaseRunning)
}
