package controller

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"kube-queue.dev/kube-queue/pkg/clientset"
	"kube-queue.dev/kube-queue/test/clustertest"
	"kube-queue.dev/kube-queue/test/require"
)

// rows returns the output of kubectl get, with one space between columns and ages replaced.
func (s *stage) rows(args ...string) string {
	s.Helper()
	out, err := cluster.Kubectl(s.Context(), append([]string{"get", "-n", s.namespace}, args...)...)
	if err != nil {
		s.Fatalf("kubectl get %s: %v", strings.Join(args, " "), err)
	}
	out = regexp.MustCompile(` +`).ReplaceAllString(strings.TrimSpace(out), " ")
	return regexp.MustCompile(` [0-9]+s\b`).ReplaceAllString(strings.ReplaceAll(out, " \n", "\n"), " AGE")
}

func (s *stage) shows(want string, args ...string) {
	s.Helper()
	s.eventually("kubectl get "+strings.Join(args, " "), func() string {
		if is := s.rows(args...); is != want {
			return fmt.Sprintf("it prints\n%s\nwant\n%s", is, want)
		}
		return ""
	})
}

// rootQueue is the Queue of the stage's tree.
const rootQueue = "root"

// asExtensions returns a client for the units as job-extensions.
func (s *stage) asExtensions() clientset.QueueUnits {
	s.Helper()
	config, _, err := cluster.ServiceAccountConfig(s.Context(), "job-extensions")
	must(s.T, err)
	client, err := clientset.NewForConfig(config)
	must(s.T, err)
	return client.SchedulingV1alpha1().QueueUnits(s.namespace)
}

func TestKubectlShowsWhatAUnitRequests(t *testing.T) {
	s := newStage(t)
	s.unit("large", `priority: 7, resource: {cpu: 3, memory: 12Gi}`)

	// The status has not been written yet.
	s.shows("NAME QUEUE PHASE REASON PRIORITY KIND REQUESTS AGE\n"+
		`large Enqueued 7 Thing {"cpu":3,"memory":"12Gi"} AGE`, "qu")

	startController(t)
	s.becomes("large", "phase", "Dequeued")
	s.unit("small", `resource: {cpu: "2"}`)
	s.shows("NAME QUEUE PHASE REASON PRIORITY KIND REQUESTS AGE\n"+
		`large root Dequeued 7 Thing {"cpu":3,"memory":"12Gi"} AGE`+"\n"+
		`small root Enqueued QuotaExceeded 0 Thing {"cpu":"2"} AGE`, "qu")
}

func TestUnitsAreSelectedByQueueAndPhase(t *testing.T) {
	s := newStage(t)
	s.unit("large", `resource: {cpu: 3}`)
	fields, err := cluster.Kubectl(t.Context(), "get", "crd", "queueunits.scheduling.x-k8s.io", "-o", "jsonpath={.spec.versions[0].selectableFields}")
	must(t, err)
	if fields == "" { // Kubernetes 1.30 drops them; the CRD can be applied all the same
		_, err := cluster.Kubectl(t.Context(), "get", "qu", "-A", "--field-selector=status.phase=Enqueued")
		require.ErrorSays(t, err, "field label not supported: status.phase")
		return
	}
	s.shows("queueunit.scheduling.x-k8s.io/large", "qu", "--field-selector=status.phase=Enqueued", "-o", "name")
	s.shows("queueunit.scheduling.x-k8s.io/large", "qu", "--field-selector=status.queue=", "-o", "name")

	startController(t)
	s.becomes("large", "phase", "Dequeued")
	s.unit("small", `resource: {cpu: 2}`)
	s.becomes("small", "reason", "QuotaExceeded")
	s.shows("queueunit.scheduling.x-k8s.io/small", "qu", "--field-selector=status.phase=Enqueued,status.queue=root", "-o", "name")
	s.shows("queueunit.scheduling.x-k8s.io/large", "qu", "--field-selector=status.phase=Dequeued,status.queue=root", "-o", "name")
	s.shows("", "qu", "--field-selector=status.queue=other", "-o", "name")
	if _, err = cluster.Kubectl(t.Context(), "get", "qu", "-A", "--field-selector=status.reason=QuotaExceeded"); err == nil ||
		!strings.Contains(err.Error(), "field label not supported: status.reason") {
		t.Errorf("a field that is not selectable: %v", err)
	}
}

func TestKubectlShowsWhatAQueueHolds(t *testing.T) {
	s := newStage(t)
	startController(t)
	s.unit("first", `priority: 9, resource: {cpu: 1}`)
	s.becomes("first", "phase", "Dequeued")
	_, err := s.asExtensions().Patch(t.Context(), "first", types.MergePatchType, []byte(`{"status": {"phase": "Running"}}`), metav1.PatchOptions{}, "status")
	must(t, err)
	s.unit("second", `resource: {cpu: 2}`)
	s.becomes("second", "phase", "Dequeued")
	s.unit("third", `priority: 4, resource: {cpu: 2}`)
	s.becomes("third", "reason", "QuotaExceeded")
	get := []string{"queue", "-n", clustertest.Namespace}
	s.shows("NAME POLICY PENDING RESERVED DEQUEUED RUNNING FRONT-REASON AGE\n"+
		"root RoundRobin 1 0 1 1 QuotaExceeded AGE", get...)
	s.shows("NAME POLICY PENDING RESERVED DEQUEUED RUNNING FRONT-REASON AGE STOP QUOTA HIGHEST-PRIORITY\n"+
		"root RoundRobin 1 0 1 1 QuotaExceeded AGE root 9", "kqueue", "-n", clustertest.Namespace, "-o", "wide")

	// Readers of Queues may have no right to read the units.
	queue, err := s.queues().Get(t.Context(), rootQueue, metav1.GetOptions{})
	must(t, err)
	text, err := queue.MarshalJSON()
	must(t, err)
	for _, name := range []string{"first", "second", "third", s.namespace} {
		if strings.Contains(string(text), name) {
			t.Errorf("the Queue contains %q: %s", name, text)
		}
	}
}

func TestTheHeadThatAnOlderReleaseHasWrittenIsNotServed(t *testing.T) {
	s := newStage(t)
	s.create(s.queues(), `{apiVersion: scheduling.x-k8s.io/v1alpha1, kind: Queue, metadata: {name: `+rootQueue+`}}`)
	_, err := s.queues().Patch(t.Context(), rootQueue, types.MergePatchType, []byte(`{"status": {"quota": "root", "head": "others/unit"}}`), metav1.PatchOptions{}, "status")
	must(t, err)
	queue, err := s.queues().Get(t.Context(), rootQueue, metav1.GetOptions{})
	must(t, err)
	if head, there, _ := unstructured.NestedString(queue.Object, "status", "head"); there {
		t.Errorf("the Queue has the head %q", head)
	}
}

func TestATreeIsDescribedWithMinMaxAndUsedOfEachNode(t *testing.T) {
	s := newStage(t)
	_, err := s.trees().Patch(t.Context(), "tree", types.MergePatchType, fmt.Appendf(nil, `{"spec": {"root": {"namespaces": null, "children": [
		{"name": "team", "namespaces": [%[1]q], "min": {"cpu": 1}, "max": {"cpu": 3, "kube-queue/max-jobs": 2}},
		{"name": "other", "namespaces": [%[1]q], "min": {"cpu": 2}}]}}}`, s.namespace), metav1.PatchOptions{})
	must(t, err)
	startController(t)
	s.unit("first", `resource: {cpu: 2}`)
	s.becomes("first", "phase", "Dequeued")
	s.used("2")
	s.eventually("kubectl describe", func() string {
		out, err := cluster.Kubectl(t.Context(), "describe", "elasticquotatree", "tree", "-n", "kube-system")
		must(t, err)
		lines := regexp.MustCompile(` +`).ReplaceAllString(out, " ")
		for _, want := range []string{
			"\n Borrowed:\n Cpu: 1\n Jobs: 1\n Max:\n Cpu: 3\n kube-queue/max-jobs: 2\n Min:\n Cpu: 1\n Path: root/team\n Request:\n Cpu: 2\n Used:\n Cpu: 2\n",
			"\n Jobs: 0\n Min:\n Cpu: 2\n Path: root/other\n",
			"\n Jobs: 1\n Max:\n Cpu: 4\n Min:\n Cpu: 3\n Path: root\n",
		} {
			if !strings.Contains(lines, want) {
				return fmt.Sprintf("it does not contain %q:\n%s", want, out)
			}
		}
		return ""
	})
	s.shows("NAME VALID AGE\ntree True AGE", "elasticquotatree", "-n", "kube-system")
}
