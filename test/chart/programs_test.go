package chart

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"kube-queue.dev/kube-queue/extensions/registry"
	"kube-queue.dev/kube-queue/test/require"
)

const controller, extensions = "kube-queue-controller", "job-extensions"

// Users edit the Deployments by hand, so they must contain the settings in force.
func TestDeploymentsContainTheirSettings(t *testing.T) {
	rendered := render(t)
	if got, want := texts(container(t, the(t, rendered, "Deployment", extensions))["args"]), []string{"--enabled-extensions=" + registry.Default,
		"--annotation-extensions=" + strings.Join(registry.NamesOf(registry.All()), ",")}; !slices.Equal(got, want) {
		t.Errorf("job-extensions is started with %v, want %v", got, want)
	}
	// A kind marked by spec.suspend would queue and release each suspended object in the cluster.
	require.Says(t, "the manifest in deploy", read(t, root+"/deploy/programs/job-extensions.yaml"), "--enabled-extensions="+registry.Default+"\"")
	decides := container(t, the(t, rendered, "Deployment", controller))
	for _, arg := range texts(decides["args"]) {
		if !strings.HasPrefix(arg, "--webhook-") {
			t.Errorf("a flag wins over the environment: %v", arg)
		}
	}
}

// By default, rights and policies are those of the queued kinds, in either list.
func TestTheKindsThatAreQueuedHaveRightsAndPolicies(t *testing.T) {
	lists := []string{"--set", "enabledExtensions={tfjob},annotationExtensions={job}"}
	usual, enabled := render(t, lists...), render(t, append(lists, onlyEnabled)...)
	one, other := rights(the(t, usual, "ClusterRole", "kube-queue-job-extensions")), rights(the(t, enabled, "ClusterRole", "kube-queue-job-extensions"))
	if !maps.Equal(one, other) || !one["patch batch/jobs"] || !one["patch kubeflow.org/tfjobs"] || one["list ray.io/rayjobs"] {
		t.Errorf("the rights are %v", slices.Sorted(maps.Keys(one)))
	}
	if got := slices.Sorted(maps.Keys(holdPolicies(usual))); !slices.Equal(got, []string{"kube-queue-hold-job", "kube-queue-hold-tfjob", "kube-queue-managed-namespace"}) {
		t.Errorf("the policies are %v", got)
	}
}

func TestNamesDoNotDependOnTheNameOfTheRelease(t *testing.T) {
	usual := render(t)
	out, err := run(t, "template", "another", chart, "--namespace", "elsewhere", "--kube-version", "1.36.0")
	require.NoError(t, err)
	elsewhere := objects(t, out)
	the(t, elsewhere, "Namespace", "kube-queue")
	if len(elsewhere) != len(usual)+1 {
		t.Errorf("there are %d objects elsewhere, %d usually", len(elsewhere), len(usual))
	}
	for _, o := range usual {
		same := the(t, elsewhere, o.GetKind(), o.GetName())
		for _, labels := range [][]string{{"metadata"}, {"spec", "template", "metadata"}} {
			path := append(labels, "labels", "app.kubernetes.io/instance")
			if name := same.labels(path[:len(path)-1]...)["app.kubernetes.io/instance"]; name == "another" {
				require.NoError(t, unstructured.SetNestedField(same.Object, "queue", path...))
			}
		}
		if !reflect.DeepEqual(o.Object, same.Object) {
			t.Errorf("%v differs:\n%s", o, same.text)
		}
		if namespace := o.GetNamespace(); namespace != "" && namespace != "kube-queue" {
			t.Errorf("%v is in namespace %s", o, namespace)
		}
	}
}

// Selectors and references must match existing objects.
func TestSelectorsMatchThePrograms(t *testing.T) {
	rendered := render(t, "--values", values("everything"))
	for _, name := range []string{controller, extensions} {
		pods := the(t, rendered, "Deployment", name).labels("spec", "template", "metadata", "labels")
		other := the(t, rendered, "Deployment", map[string]string{controller: extensions, extensions: controller}[name]).
			labels("spec", "template", "metadata", "labels")
		selectors := map[string]map[string]string{
			"Deployment":          the(t, rendered, "Deployment", name).labels("spec", "selector", "matchLabels"),
			"PodDisruptionBudget": the(t, rendered, "PodDisruptionBudget", name).labels("spec", "selector", "matchLabels"),
			"NetworkPolicy":       the(t, rendered, "NetworkPolicy", name).labels("spec", "podSelector", "matchLabels"),
			"Service":             the(t, rendered, "Service", name+"-metrics").labels("spec", "selector"),
		}
		for who, selector := range selectors {
			if !chooses(selector, pods) || chooses(selector, other) {
				t.Errorf("the %s of %s chooses by %v", who, name, selector)
			}
		}
		the(t, rendered, "ServiceAccount", name)
		the(t, rendered, "ConfigMap", name)
	}
	monitor := the(t, rendered, "ServiceMonitor", "kube-queue").labels("spec", "selector", "matchLabels")
	for name, service := range kind(rendered, "Service") {
		if !chooses(monitor, service.GetLabels()) {
			t.Errorf("the ServiceMonitor chooses by %v, and not the Service %s", monitor, name)
		}
	}
	for _, o := range rendered {
		if o.GetKind() == "RoleBinding" || o.GetKind() == "ClusterRoleBinding" {
			ref, _ := o.Object["roleRef"].(map[string]any)
			the(t, rendered, fmt.Sprint(ref["kind"]), fmt.Sprint(ref["name"]))
			for _, subject := range o.list("subjects") {
				if subject["namespace"] != "kube-queue" {
					continue // an operator
				}
				the(t, rendered, fmt.Sprint(subject["kind"]), fmt.Sprint(subject["name"]))
			}
		}
	}
}

func chooses(selector, labels map[string]string) bool {
	for key, value := range selector {
		if labels[key] != value {
			return false
		}
	}
	return len(selector) > 0
}

func TestAllObjectsHaveTheCommonLabels(t *testing.T) {
	version := metadata(t).Version
	for _, o := range render(t, "--values", values("everything"), "--set-json", `commonLabels={"app.kubernetes.io/managed-by": "own", "example.com/owner": "platform"}`) {
		want := map[string]string{"app.kubernetes.io/part-of": "kube-queue", "app.kubernetes.io/instance": "queue", "app.kubernetes.io/version": version,
			"app.kubernetes.io/managed-by": "own", "helm.sh/chart": "kube-queue-" + version, "example.com/owner": "platform"}
		if labels := o.GetLabels(); !chooses(want, labels) {
			t.Errorf("%v has labels %v, want %v", o, labels, want)
		}
	}
}

// A selector is immutable. An upgrade from a release with different selectors would fail.
func TestSelectorsOfDeploymentsNeverChange(t *testing.T) {
	deployments := kind(render(t, "--values", values("everything")), "Deployment")
	if len(deployments) < 2 {
		t.Fatalf("the chart creates %d Deployments", len(deployments))
	}
	for name, deployment := range deployments {
		want := map[string]string{"app.kubernetes.io/name": name, "app.kubernetes.io/part-of": "kube-queue"}
		if got := deployment.labels("spec", "selector", "matchLabels"); !maps.Equal(got, want) {
			t.Errorf("%s has the selector %v, want %v", name, got, want)
		}
	}
}

// On the node's network, the pods of the programs can run side by side if their ports differ.
func TestAProgramListensOnThePortsOfItsValues(t *testing.T) {
	set := []string{"--set", "controller.hostNetwork=true,controller.ports.health=1,controller.ports.metrics=2,controller.ports.webhook=3"}
	for by, args := range map[string][]string{"policy": set, "webhook": append(set, "--set", "holdPolicies.by=webhook,jobExtensions.ports.webhook=4")} {
		rendered := render(t, args...)
		text := the(t, rendered, "Deployment", controller).text
		require.Says(t, "the controller", text, "hostNetwork: true", "--health-bind-address=:1\"", "--metrics-bind-address=:2\"", "--webhook-bind-address=:3\"", "--webhook-advertise-address=[$(POD_IP)]:3\"",
			"containerPort: 1\n", "containerPort: 2\n", "containerPort: 3\n")
		text = the(t, rendered, "Service", "kube-queue-controller-webhook").text
		require.Says(t, "the Service", text+"\n", "targetPort: 3\n")
		if text := the(t, rendered, "Deployment", extensions).text; strings.Contains(text, "--webhook-bind-address=:4\"") != (by == "webhook") {
			t.Errorf("job-extensions has another port:\n%s", text)
		}
	}
}

// Without metrics there is no port.
func TestWithoutMetricsThereIsNoPort(t *testing.T) {
	for _, on := range []bool{true, false} {
		rendered := render(t, "--set", fmt.Sprintf("networkPolicy.enabled=true,metrics.enabled=%t", on))
		for _, name := range []string{controller, extensions} {
			deployment, policy := the(t, rendered, "Deployment", name), the(t, rendered, "NetworkPolicy", name)
			for what, there := range map[string]bool{
				"no flag against it":        !slices.Contains(texts(container(t, deployment)["args"]), "--metrics-bind-address=0"),
				"a port":                    strings.Contains(deployment.text, "containerPort: 8443"),
				"a way through the network": strings.Contains(policy.text, "port: metrics"),
				"a Service":                 kind(rendered, "Service")[name+"-metrics"].text != "",
			} {
				if there != on {
					t.Errorf("with metrics.enabled=%t %s has %s: %t", on, name, what, there)
				}
			}
		}
	}
}

// A program reads its file only when it starts.
func TestAChangedConfigFileRestartsPods(t *testing.T) {
	checksum := func(setting string) string {
		deployment := the(t, render(t, "--set", setting), "Deployment", controller)
		return deployment.labels("spec", "template", "metadata", "annotations")["kube-queue/config-checksum"]
	}
	one, same, other := checksum("controller.config.a=1"), checksum("controller.config.a=1"), checksum("controller.config.a=2")
	if one == "" || one != same || one == other {
		t.Errorf("checksums are %q, %q and %q", one, same, other)
	}
	if none := checksum("jobExtensions.config.a=1"); none != "" {
		t.Errorf("the file of job-extensions makes new pods of the controller")
	}
}

func TestImagesHaveADigestATagOrTheVersionOfTheChart(t *testing.T) {
	const digest = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	version := metadata(t).AppVersion
	tests := []struct{ set, want string }{
		{"image.tag=v2", "kube-queue/kube-queue-controller:v2"},
		{"image.registry=registry.example.com/team", "registry.example.com/team/kube-queue/kube-queue-controller:" + version},
		{"controller.image.repository=mine", "mine:" + version},
		{"image.tag=v2,controller.image.digest=" + digest, "kube-queue/kube-queue-controller@" + digest},
	}
	for _, test := range tests {
		t.Run(test.set, func(t *testing.T) {
			t.Parallel()
			if got := container(t, the(t, render(t, "--set", test.set), "Deployment", controller))["image"]; got != test.want {
				t.Errorf("the image is %v, want %s", got, test.want)
			}
		})
	}
}
