package admission

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	typedv1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"sigs.k8s.io/yaml"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	"kube-queue.dev/kube-queue/test/clustertest"
)

// gateTest has users of a namespace while pods are queued.
type gateTest struct {
	namespace                         string
	tenant, onCall, extensions, admin typedv1.PodInterface
}

// podsAreQueued installs the additions in deploy/pods for one test.
func podsAreQueued(t *testing.T, ns string) gateTest {
	t.Helper()
	folder := filepath.Join(cluster.Repository, "deploy", "pods")
	if cluster.HoldsBy == clustertest.HoldByWebhook {
		folder = filepath.Join(cluster.Repository, "deploy", "webhook", "pods")
	}
	kubectl(t, "", "apply", "--server-side", "--force-conflicts", "-f", filepath.Join(folder, "rbac"), "-f", filepath.Join(folder, "policies"))
	t.Cleanup(func() {
		if _, err := cluster.Kubectl(context.Background(), "delete", "-f", filepath.Join(folder, "policies", "gate.yaml")); err != nil {
			t.Error(err)
		}
		if err := cluster.Install(context.Background()); err != nil {
			t.Error(err)
		}
	})
	client, err := kubernetes.NewForConfig(program(t, "job-extensions"))
	must(t, err)
	g := gateTest{ns, podsOf(t, ns, "tenant"), podsOf(t, ns, "on-call"), client.CoreV1().Pods(ns), core(t).CoreV1().Pods(ns)}
	grant(t, ns, "ClusterRole", "kube-queue-bypass", "on-call")
	eventually(t, "pods are queued", func(ctx context.Context) error {
		pod, err := g.create(t, g.tenant, "probe", marked, "", true)
		if err == nil && !gated(pod) {
			err = fmt.Errorf("the pod is %v", pod)
		}
		if err != nil {
			return err
		}
		if _, err := g.create(t, g.tenant, "probe", marked, ", nodeName: n", true); err == nil {
			return fmt.Errorf("the gate is not protected")
		}
		if !may(ctx, t, "system:serviceaccount:kube-queue:job-extensions", ns, "delete", "/pods") {
			return fmt.Errorf("the rights are not in effect")
		}
		// A pod that was never at the gate.
		if _, err := g.create(t, g.admin, "other", bypass, "", false); err != nil && !apierrors.IsAlreadyExists(err) {
			return err
		}
		err = g.extensions.Delete(ctx, "other", metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}})
		if err == nil || !strings.Contains(err.Error(), "changes and deletes only pods with label") {
			return fmt.Errorf("job-extensions is not limited: %v", err)
		}
		return nil
	})
	return g
}

// create creates a pod with fields of its metadata and its spec.
func (g gateTest) create(t *testing.T, pods typedv1.PodInterface, name, metadata, spec string, dryRun bool) (*corev1.Pod, error) {
	t.Helper()
	pod := new(corev1.Pod)
	for _, text := range []string{metadata, `{spec: {containers: [{name: c, image: i}]` + spec + `}}`} {
		if text != "" {
			must(t, yaml.Unmarshal([]byte(text), pod))
		}
	}
	pod.Name = name
	options := metav1.CreateOptions{}
	if dryRun {
		options.DryRun = []string{metav1.DryRunAll}
	}
	return pods.Create(t.Context(), pod, options)
}

func gated(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Spec.SchedulingGates, func(gate corev1.PodSchedulingGate) bool { return gate.Name == wellknown.PodGate })
}

const released = `{metadata: {labels: {kube-queue/gated: "true"}, annotations: {scheduling.x-k8s.io/suspend: "true", kube-queue/released: "1"}}}`

// markedWith is a marked pod with other metadata.
func markedWith(metadata string) string {
	return `{metadata: {annotations: {scheduling.x-k8s.io/suspend: "true"}, ` + metadata + `}}`
}

// growing is a pod of a job whose growth is gated, with other metadata.
func growing(metadata string) string {
	return `{metadata: {annotations: {kube-queue/growth: "true"}` + metadata + `}}`
}

// Without queued pods, no pod has been at the gate, so none counts for a group.
func TestNobodyClaimsThatAPodWasAtTheGateWherePodsAreNotQueued(t *testing.T) {
	ns := namespace(t)
	g := gateTest{namespace: ns}
	const claims, only = `{metadata: {labels: {kube-queue/gated: "true", kube-queue/pod-group: g}}}`, "only kube-queue sets label kube-queue/gated"
	tenant := podsOf(t, ns, "tenant")
	eventually(t, "a pod is created", func(context.Context) error {
		_, err := g.create(t, tenant, "plain", `{metadata: {labels: {kube-queue/pod-group: g}}}`, "", false)
		return err
	})
	eventually(t, "a pod with the label is refused", func(context.Context) error {
		if _, err := g.create(t, tenant, "claims", claims, "", true); err == nil || !strings.Contains(err.Error(), only) {
			return fmt.Errorf("it is created, or refused with %v", err)
		}
		return nil
	})
	for user, pods := range map[string]typedv1.PodInterface{"tenant": tenant, "the Job controller": podsOf(t, ns, "system:serviceaccount:kube-system:job-controller")} {
		_, err := g.create(t, pods, "claims", claims, "", true)
		forbidden(t, user+" creates a pod with the label", err, only)
		_, err = pods.Patch(t.Context(), "plain", types.MergePatchType, toJSON(t, claims), metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}})
		forbidden(t, user+" adds the label", err, only)
	}
}

func TestAMarkedPodWaitsAtTheGate(t *testing.T) {
	g := podsAreQueued(t, namespace(t))
	owner := func(version, kind string) string {
		return strings.TrimSuffix(strings.TrimPrefix(ownedBy(version, kind, "true"), "{metadata: {"), "}}")
	}
	for name, test := range map[string]struct {
		metadata, spec string
		gated          bool
		refused        string
	}{
		"a marked pod":                      {marked, "", true, ""},
		"one with another gate and labels":  {markedWith(`labels: {a: b}`), `, schedulingGates: [{name: example.com/a}]`, true, ""},
		"one of a ReplicaSet":               {markedWith(owner("apps/v1", "ReplicaSet")), "", true, ""},
		"a copy of a released pod":          {released, "", true, ""},
		"an unmarked pod":                   {"", "", false, ""},
		"one of a group":                    {markedWith(`labels: {kube-queue/pod-group: a.b-c}`), "", true, ""},
		"one of a group with a bad name":    {markedWith(`labels: {kube-queue/pod-group: My_Group}`), "", false, "must consist of lower-case letters"},
		"one that is marked false":          {`{metadata: {annotations: {scheduling.x-k8s.io/suspend: "false"}}}`, "", false, ""},
		"a part of a Job":                   {markedWith(owner("batch/v1", "Job")), "", false, ""},
		"a part of a RayCluster":            {markedWith(owner("ray.io/v1", "RayCluster")), "", false, ""},
		"an executor":                       {markedWith(`labels: {sparkoperator.k8s.io/app-name: a}, ` + owner("v1", "Pod")), "", false, ""},
		"one that Kueue manages":            {markedWith(`labels: {kueue.x-k8s.io/queue-name: a}`), "", false, ""},
		"one with bypass":                   {`{metadata: {annotations: {scheduling.x-k8s.io/suspend: "true", kube-queue/bypass: "true"}}}`, "", false, ""},
		"one of a job that grows":           {growing(`, ` + owner("ray.io/v1", "RayCluster")), "", true, ""},
		"one of no job that grows":          {growing(""), "", false, "only the release of a queued job"},
		"one that grows and names its node": {growing(`, ` + owner("batch/v1", "Job")), ", nodeName: n", false, "cannot name their node"},
		"one that names its node":           {marked, ", nodeName: n", false, "cannot name its node"},
		"an unmarked one with a node":       {"", ", nodeName: n", false, ""},
		"one with a forged label":           {`{metadata: {labels: {kube-queue/gated: "true"}}}`, "", false, "kube-queue sets label kube-queue/gated"},
		"one with a forged gate":            {"", ", schedulingGates: [{name: scheduling.x-k8s.io/kube-queue}]", false, "kube-queue sets label kube-queue/gated"},
		"one that a webhook has marked":     {markedWith(`labels: {kube-queue/gated: "true"}`), ", schedulingGates: [{name: scheduling.x-k8s.io/kube-queue}]", true, ""},
		"one with both, but without a mark": {`{metadata: {labels: {kube-queue/gated: "true"}}}`, ", schedulingGates: [{name: scheduling.x-k8s.io/kube-queue}]", false, "kube-queue sets label kube-queue/gated"},
	} {
		t.Run(name, func(t *testing.T) {
			pod, err := g.create(t, g.tenant, "new", test.metadata, test.spec, true)
			wantError(t, err, test.refused)
			if err != nil {
				return
			}
			_, copied := pod.Annotations[wellknown.ReleasedAnnotation]
			if gated(pod) != test.gated || (pod.Labels[wellknown.GatedLabel] == "true") != test.gated || copied {
				t.Errorf("labels %v, annotations %v, gates %v", pod.Labels, pod.Annotations, pod.Spec.SchedulingGates)
			}
		})
	}
}

func TestNobodyTakesAPodPastItsGate(t *testing.T) {
	g := podsAreQueued(t, namespace(t))
	for name, gates := range map[string]string{"waits": "", "runs": "", "gates": ", schedulingGates: [{name: example.com/a}]", "plain": ""} {
		metadata := marked
		if name == "plain" {
			metadata = ""
		}
		_, err := g.create(t, g.tenant, name, metadata, gates, false)
		must(t, err)
	}
	patch := func(pods typedv1.PodInterface, pod, text string, dryRun ...string) error {
		_, err := pods.Patch(t.Context(), pod, types.StrategicMergePatchType, toJSON(t, text), metav1.PatchOptions{DryRun: dryRun})
		return err
	}
	const ungated = `spec: {schedulingGates: [{$patch: delete, name: scheduling.x-k8s.io/kube-queue}]}`
	const release = `{metadata: {annotations: {kube-queue/released: "1", autoscaling.x-k8s.io/consume-provisioning-request: r}}, ` + ungated + `}`
	const onlyOwn, onlyGate, onlyQueued = "job-extensions changes only its own annotations of a pod", "job-extensions removes only its own scheduling gate", "only pods with label kube-queue/gated"
	must(t, patch(g.extensions, "runs", release))
	job := strings.TrimSuffix(strings.TrimPrefix(ownedBy("batch/v1", "Job", "true"), "{"), "}")
	for _, test := range []struct{ name, pod, patch, tenant, extensions string }{
		{"no gate", "waits", `{` + ungated + `}`, "only kube-queue removes the scheduling gate", ""},
		{"a release", "waits", release, "only kube-queue", ""},
		{"no label of the gate", "waits", `{metadata: {labels: null}}`, "only kube-queue changes label kube-queue/gated", onlyOwn},
		{"another group", "waits", `{metadata: {labels: {kube-queue/pod-group: g}}}`, "only kube-queue changes label kube-queue/pod-group", onlyOwn},
		{"another size", "waits", `{metadata: {annotations: {kube-queue/pod-group-size: "9"}}}`, "only kube-queue changes annotation kube-queue/pod-group-size", onlyOwn},
		{"growth", "waits", `{metadata: {annotations: {kube-queue/growth: "true"}}}`, "only kube-queue changes annotation kube-queue/growth", onlyOwn},
		{"no mark", "waits", `{metadata: {annotations: {scheduling.x-k8s.io/suspend: null}}}`, "only kube-queue changes annotation scheduling.x-k8s.io/suspend", onlyOwn},
		{"a controller that is queued", "waits", `{` + job + `}`, "cannot become or stop being a part", onlyOwn},
		{"another image", "waits", `{spec: {containers: [{name: c, image: j}]}}`, "", onlyGate},
		{"a finalizer", "waits", `{metadata: {finalizers: [example.com/a]}}`, "", onlyOwn},
		{"other keys", "waits", `{metadata: {labels: {a: b}, annotations: {c: d}}}`, "", ""},
		{"no label after the release", "runs", `{metadata: {labels: null}}`, "only kube-queue changes label kube-queue/gated", onlyOwn},
		{"another release", "runs", `{metadata: {annotations: {kube-queue/released: null}}}`, "only kube-queue changes annotation kube-queue/released", ""},
		{"no mark after the release", "runs", `{metadata: {annotations: {scheduling.x-k8s.io/suspend: null}}}`, "", onlyOwn},
		{"no gates", "gates", `{spec: {schedulingGates: [{$patch: delete, name: scheduling.x-k8s.io/kube-queue}, {$patch: delete, name: example.com/a}]}}`, "only kube-queue removes", onlyGate},
		{"the label", "plain", `{metadata: {labels: {kube-queue/gated: "true"}}}`, "only kube-queue changes label", onlyQueued},
		{"another key", "plain", `{metadata: {labels: {a: b}}}`, "", onlyQueued},
	} {
		t.Run(test.pod+" gets "+test.name, func(t *testing.T) {
			for user, pods := range map[string]typedv1.PodInterface{"tenant": g.tenant, "on-call": g.onCall, "administrator": g.admin, "job-extensions": g.extensions} {
				want := map[string]string{"tenant": test.tenant, "job-extensions": test.extensions}[user]
				t.Log(user)
				wantError(t, patch(pods, test.pod, test.patch, metav1.DryRunAll), want)
			}
		})
	}
	dryRuns := []string{metav1.DryRunAll}
	wantError(t, g.tenant.Bind(t.Context(), &corev1.Binding{ObjectMeta: metav1.ObjectMeta{Name: "waits"}, Target: corev1.ObjectReference{Kind: "Node", Name: "n"}},
		metav1.CreateOptions{DryRun: dryRuns}), "non-empty .spec.schedulingGates")
	for _, subresource := range []string{"ephemeralcontainers", "resize"} {
		pod, err := g.tenant.Patch(t.Context(), "waits", types.StrategicMergePatchType, toJSON(t, strings.Replace(release, "spec: {", "spec: {ephemeralContainers: [{name: e, image: i}], ", 1)),
			metav1.PatchOptions{DryRun: dryRuns}, subresource)
		if apierrors.IsNotFound(err) && subresource == "resize" { // before Kubernetes 1.33
			continue
		}
		must(t, err)
		if _, released := pod.Annotations[wellknown.ReleasedAnnotation]; released || !gated(pod) {
			t.Errorf("%s: annotations %v, gates %v", subresource, pod.Annotations, pod.Spec.SchedulingGates)
		}
	}
	jobController := podsOf(t, g.namespace, "system:serviceaccount:kube-system:job-controller")
	allowed(t, "the Job controller adopts a queued pod", patch(jobController, "waits", `{`+job+`}`, metav1.DryRunAll))
	dryRun := metav1.DeleteOptions{DryRun: dryRuns}
	allowed(t, "job-extensions evicts a queued pod", g.extensions.Delete(t.Context(), "runs", dryRun))
	forbidden(t, "job-extensions deletes another pod", g.extensions.Delete(t.Context(), "plain", dryRun), "job-extensions changes and deletes only pods with label")
	allowed(t, "the owner deletes a waiting pod", g.tenant.Delete(t.Context(), "waits", dryRun))

	// After an uninstall, the command on the page removes kube-queue's gate from waiting pods, and other gates stay.
	page, err := os.ReadFile(filepath.Join(cluster.Repository, "docs", "operations", "install.md"))
	must(t, err)
	_, after, _ := strings.Cut(string(page), "kubectl get pods -A -l kube-queue/gated=true")
	command, _, found := strings.Cut(after, "```")
	if !found {
		t.Fatal("docs/operations/install.md has no command that removes the gates")
	}
	cmd := exec.CommandContext(t.Context(), "bash", "-euo", "pipefail", "-c", "kubectl get pods -A -l kube-queue/gated=true"+command)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+cluster.Kubeconfig, "PATH="+filepath.Dir(cluster.KubectlPath)+":"+os.Getenv("PATH"))
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for name, want := range map[string]int{"waits": 0, "runs": 0, "gates": 1} {
		pod, err := g.tenant.Get(t.Context(), name, metav1.GetOptions{})
		must(t, err)
		if gated(pod) || len(pod.Spec.SchedulingGates) != want {
			t.Errorf("%s has gates %v", name, pod.Spec.SchedulingGates)
		}
	}
}

func TestEveryPodOfAManagedNamespaceWaitsAtTheGate(t *testing.T) {
	ns := managedNamespace(t)
	g := podsAreQueued(t, ns)
	controller := podsOf(t, ns, "system:serviceaccount:kube-system:job-controller")
	const notAllowed = `requires the verb "bypass"`
	job := ownedBy("batch/v1", "Job", "true")
	eventually(t, "the fence is in effect", func(context.Context) error {
		if _, err := g.create(t, g.tenant, "probe", bypass, "", true); err == nil {
			return errors.New("a pod may bypass the queue")
		}
		return nil
	})
	for _, test := range []struct {
		name           string
		pods           typedv1.PodInterface
		metadata, spec string
		gated          bool
		refused        string
	}{
		{"an unmarked pod", g.tenant, "", "", true, ""},
		{"one that is marked false", g.tenant, `{metadata: {annotations: {scheduling.x-k8s.io/suspend: "false"}}}`, "", true, ""},
		{"a part of a Job", controller, job, "", false, ""},
		{"one that claims to be a part", g.tenant, job, "", true, ""},
		{"one that claims to be growth", g.tenant, growing(", " + strings.TrimPrefix(strings.TrimSuffix(job, "}}"), "{metadata: {")), "", false, "only the operator of a job"},
		{"one with bypass", g.tenant, bypass, "", false, notAllowed},
		{"one with bypass of somebody who may", g.onCall, bypass, "", false, ""},
		{"one of another queue", g.tenant, `{metadata: {labels: {kueue.x-k8s.io/queue-name: a}}}`, "", false, "another queue"},
		{"one that names its node", g.tenant, "", ", nodeName: n", false, "cannot name its node"},
		{"a forged mirror pod", g.tenant, `{metadata: {annotations: {kubernetes.io/config.mirror: a}}}`, ", nodeName: n", false, "cannot name its node"},
	} {
		t.Run(test.name, func(t *testing.T) {
			pod, err := g.create(t, test.pods, "new", test.metadata, test.spec, true)
			wantError(t, err, test.refused)
			if err == nil && (gated(pod) != test.gated || (pod.Annotations[mark] == "true" && pod.Annotations[managedNote] == "true") != test.gated) {
				t.Errorf("labels %v, annotations %v, gates %v", pod.Labels, pod.Annotations, pod.Spec.SchedulingGates)
			}
		})
	}
}
