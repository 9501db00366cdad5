package reviews

import (
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
	"kube-queue.dev/kube-queue/test/harness"
)

// story is a job that waits for a reason. What its review says is done admits the job.
type story struct {
	reason string
	// node is the rest of the node of the namespace in the quota tree: its max, and its min if it has one. If it is empty,
	// the namespace has no node.
	node string
	// prepare makes the Job named waiting wait.
	prepare func(*scene)
	// says is a part of the message of an entry of wouldAdmit, and does does it. If does is nil, the entry is a
	// command or a raise of quota, which any reader can follow.
	says string
	does func(*scene, visibilityv1alpha1.Remedy)
}

// scene is a story in its namespace.
type scene struct {
	*harness.Env
	t *testing.T
}

func (s *scene) queue() string { return "root-" + s.Namespace }

// job creates a Job of the namespace, with further metadata and a further field of its spec.
func (s *scene) job(name, cpu string, more ...string) {
	metadata, spec := "", ""
	if len(more) > 0 {
		metadata = more[0]
	}
	if len(more) > 1 {
		spec = more[1]
	}
	s.Apply(fmt.Sprintf(`{apiVersion: batch/v1, kind: Job, metadata: {name: %s, annotations: {scheduling.x-k8s.io/suspend: "true"%s}%s}, spec: {%stemplate: {spec: {
		restartPolicy: Never, containers: [{name: main, image: busybox, resources: {requests: {cpu: %q}}}]}}}}`,
		name, annotation(metadata), label(metadata), spec, cpu))
}

func annotation(text string) string {
	if strings.HasPrefix(text, "labels:") {
		return ""
	}
	return text
}

func label(text string) string {
	if !strings.HasPrefix(text, "labels:") {
		return ""
	}
	return ", " + text
}

func (s *scene) runs(name string) { s.WaitForPhase("Job", name, schedulingv1alpha1.PhaseRunning) }

// kubectl runs kubectl in the namespace.
func (s *scene) kubectl(args ...string) {
	s.t.Helper()
	if out, err := suite.Kubectl(s.t.Context(), append(args, "-n", s.Namespace)...); err != nil {
		s.t.Fatalf("kubectl %v: %v\n%s", args, err, out)
	}
}

// finalizers replaces the finalizers of the unit of a job.
func (s *scene) finalizers(job, list string) {
	s.t.Helper()
	s.kubectl("patch", "queueunit", s.Unit("Job", job).Name, "--type=merge", "-p", `{"metadata":{"finalizers":`+list+`}}`)
}

// check writes the state of the admission check of the unit of a job.
func (s *scene) check(job, state string) {
	s.t.Helper()
	harness.Eventually(s.t, time.Minute, "the check is "+state, func() (bool, string) {
		unit := s.Unit("Job", job)
		if unit == nil || len(unit.Status.AdmissionChecks) != 1 {
			return false, fmt.Sprint(unit)
		}
		unit.Status.AdmissionChecks[0].State = schedulingv1alpha1.CheckState(state)
		unit.Status.AdmissionChecks[0].Message = "there is no node"
		patch, _ := json.Marshal(map[string]any{"metadata": map[string]any{"resourceVersion": unit.ResourceVersion},
			"status": map[string]any{"admissionChecks": unit.Status.AdmissionChecks}})
		out, err := suite.Kubectl(s.t.Context(), "patch", "queueunit", unit.Name, "-n", s.Namespace, "--subresource=status", "--type=merge", "-p", string(patch))
		return err == nil, fmt.Sprint(out, err)
	})
}

// changeTree changes the root of the tree. Other stories change other nodes at the same time.
func (s *scene) changeTree(change func(root map[string]any) error) {
	s.t.Helper()
	resource := s.Dynamic.Resource(harness.Trees).Namespace("kube-system")
	harness.Must(s.t, retry.RetryOnConflict(retry.DefaultBackoff, func() error {
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

// raise writes the limits of a remedy into the tree.
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

// raised changes the node with the path, and reports whether it had the amount before.
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
	for _, child := range children {
		if raised(child.(map[string]any), path, change) {
			return true
		}
	}
	return false
}

// follow runs the command of a remedy, or raises the quota.
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

func endOf(job string) func(*scene, visibilityv1alpha1.Remedy) {
	return func(s *scene, _ visibilityv1alpha1.Remedy) { s.Delete(harness.Jobs, job) }
}

var stories = []story{
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
		s.job("waiting", "2", `labels: {kube-queue/preemptible: "false"}`)
	}},
	{reason: "ExceedsMaxQuota", node: "max: {cpu: 2}", says: "raises max of cpu in quota root/exceedsmaxquota from 2 to 3", prepare: func(s *scene) {
		s.job("waiting", "3")
	}},
	{reason: "Terminating", node: "max: {cpu: 2}", says: "remove the finalizer", prepare: func(s *scene) {
		s.job("first", "2")
		s.runs("first")
		s.job("waiting", "1")
		s.WaitForReason("Job", "waiting", "QuotaExceeded")
		s.finalizers("waiting", `["example.com/keep"]`)
		s.kubectl("delete", "queueunit", s.Unit("Job", "waiting").Name, "--wait=false")
	}, does: func(s *scene, _ visibilityv1alpha1.Remedy) {
		s.Delete(harness.Jobs, "first")
		s.finalizers("waiting", "null")
	}},
	{reason: "AdmissionCheckRejected", node: "max: {cpu: 2}", says: "there is no node", prepare: func(s *scene) {
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
		s.job("waiting", "1", `, scheduling.x-k8s.io/active: "false"`)
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
		s.job("waiting", "1", `labels: {kube-queue/quota-name: other}`)
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
	{reason: "InvalidRequest", node: "max: {cpu: 2}", says: "max-exec-time-seconds", prepare: func(s *scene) {
		s.job("waiting", "1", `, scheduling.x-k8s.io/max-exec-time-seconds: "soon"`)
	}, does: func(s *scene, _ visibilityv1alpha1.Remedy) {
		s.kubectl("annotate", "job", "waiting", "scheduling.x-k8s.io/max-exec-time-seconds-")
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
		s.Apply(`{apiVersion: batch/v1, kind: Job, metadata: {name: first, annotations: {scheduling.x-k8s.io/suspend: "true"}}, spec: {template: {spec: {
			nodeSelector: {no: node}, restartPolicy: Never, containers: [{name: main, image: busybox, resources: {requests: {cpu: "1"}}}]}}}}`)
		s.WaitForPhase("Job", "first", schedulingv1alpha1.PhaseDequeued, schedulingv1alpha1.PhaseRunning)
		s.job("waiting", "1")
	}, does: endOf("first")},
}

// The sentence is the one that the unit shows, which the page of the reasons promises.
func TestWhatWouldAdmitAJobForEachReason(t *testing.T) {
	env := suite.Env(t, "default")
	var nodes []string
	for _, s := range stories {
		name := strings.ToLower(s.reason)
		if s.node == "" {
			continue
		}
		nodes = append(nodes, fmt.Sprintf("{name: %s, namespaces: [%s], %s}", name, name, s.node))
	}
	env.TreeOf(nodes...)
	_, err := env.Queue.SchedulingV1alpha1().AdmissionChecks().Create(t.Context(), &schedulingv1alpha1.AdmissionCheck{
		ObjectMeta: metav1.ObjectMeta{Name: "nodes"}, Spec: schedulingv1alpha1.AdmissionCheckSpec{ControllerName: "example.com/nodes"}}, metav1.CreateOptions{})
	harness.Must(t, err)
	start(t, env)
	t.Run("stories", func(t *testing.T) {
		for _, s := range stories {
			t.Run(s.reason, func(t *testing.T) {
				t.Parallel()
				play(&scene{suite.Part(t, strings.ToLower(s.reason)), t}, s)
			})
		}
	})
}

func play(l *scene, s story) {
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
	answer := why(l.t, l.Env, "", "waiting")
	if string(answer.Reason) != s.reason || answer.Message != unit.Status.Message {
		l.t.Errorf("the answer is %s: %s\nthe unit shows %s: %s", answer.Reason, answer.Message, unit.Status.Reason, unit.Status.Message)
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
