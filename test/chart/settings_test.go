package chart

import (
	"os"
	"path/filepath"
	"reflect"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"

	extensionsoptions "kube-queue.dev/kube-queue/cmd/job-extensions/options"
	controlleroptions "kube-queue.dev/kube-queue/cmd/kube-queue-controller/options"
	"kube-queue.dev/kube-queue/pkg/program"
	"kube-queue.dev/kube-queue/pkg/requests"
	"kube-queue.dev/kube-queue/test/require"
)

// In other places, settings that have a value in the chart would be ignored, or would move a program away from the
// ports of its probes and Services.
func TestSettingsWithTheirOwnValueAreRefused(t *testing.T) {
	expectRefused(t, []refused{
		{"the values of an earlier release", "controller: {ports: null, policy: null, quotaBackend: null}\njobExtensions: {ports: null}", []string{"upgrade with --reset-then-reuse-values instead of --reuse-values"}},
		{"the hosts of the pages as a flag", "web: {enabled: true, hosts: [a.example.com], extraArgs: [--hosts=b]}", []string{"web.extraArgs: --hosts=b:", "web.hosts"}},
		{"where health of the pages is", "web: {enabled: true, hosts: [a.example.com], extraArgs: ['--health-bind-address=:9']}", []string{"web.extraArgs: --health-bind-address"}},
		{"a field that the chart writes", "controller: {config: {kind: Mine}}", []string{"controller.config", "remove apiVersion and kind"}},
		{"the policy in the file", "controller: {config: {policy: Block}}",
			[]string{"controller.config.policy:", "set controller.policy"}},
		{"the backend in the file", "controller: {config: {quotaBackend: resourcequota}}",
			[]string{"controller.config.quotaBackend:", "set controller.quotaBackend"}},
		{"the kinds in the file", "jobExtensions: {config: {enabledExtensions: [job]}}",
			[]string{"jobExtensions.config.enabledExtensions:", "enabledExtensions instead"}},
		{"devices in the file of job-extensions", "jobExtensions: {config: {devices: {types: []}}}",
			[]string{"jobExtensions.config.devices:", "devices.classes"}},
		{"devices in the file of the controller", "controller: {config: {devices: {types: []}}}", []string{"controller.config.devices:"}},
		{"classes of devices as a flag", "jobExtensions: {extraArgs: [--device-classes=a=b/c]}",
			[]string{"jobExtensions.extraArgs: --device-classes=a=b/c:", "devices.classes"}},
		{"types of devices as a flag of one program", "controller: {extraArgs: ['--device_types=a/b::c/d']}",
			[]string{"controller.extraArgs: --device_types=a/b::c/d:", "devices.types", "both programs"}},
		{"a namespace in the file", "controller: {config: {namespace: mine}}", []string{"controller.config.namespace:", "kube-queue"}},
		{"where health is in the file", "jobExtensions: {config: {health: {bindAddress: ':1'}}}",
			[]string{"jobExtensions.config.health.bindAddress:", "ports.health"}},
		{"where metrics are in the file", "controller: {config: {metrics: {bindAddress: '0'}}}",
			[]string{"controller.config.metrics.bindAddress:", "metrics.enabled=false"}},
		{"the kinds as a flag", "jobExtensions: {extraArgs: [-v=2, --enabled-extensions=job]}",
			[]string{"jobExtensions.extraArgs: --enabled-extensions=job:", "enabledExtensions instead"}},
		{"the kinds as a flag in another spelling", "jobExtensions: {extraArgs: [--enabled_extensions=job]}",
			[]string{"jobExtensions.extraArgs: --enabled_extensions=job:"}},
		{"the policy as a flag", "controller: {extraArgs: [--policy=Block]}", []string{"controller.extraArgs: --policy=Block:", "controller.policy"}},
		{"the backend as a flag", "controller: {extraArgs: [--quota-backend=resourcequota]}",
			[]string{"controller.extraArgs: --quota-backend", "set controller.quotaBackend"}},
		{"work without a lease", "controller: {config: {leaderElection: {leaderElect: false}}}", []string{"controller.config.leaderElection.leaderElect:", "both would be active"}},
		{"work without a lease by a flag", "jobExtensions: {extraArgs: [--leader-elect=false]}", []string{"jobExtensions.extraArgs: --leader-elect=false:"}},
		{"a namespace as a flag", "jobExtensions: {extraArgs: [--namespace=mine]}", []string{"jobExtensions.extraArgs: --namespace=mine:"}},
		{"where health is as a flag", "controller: {extraArgs: ['--health-bind-address=:1']}", []string{"controller.extraArgs: --health-bind-address", "ports.health"}},
		{"where metrics are as a flag", "controller: {extraArgs: [--metrics-bind-address=0]}",
			[]string{"controller.extraArgs: --metrics-bind-address=0:", "metrics.enabled=false"}},
		{"another file", "jobExtensions: {extraArgs: [--config=/mine]}", []string{"jobExtensions.extraArgs: --config=/mine:", "jobExtensions.config"}},
		{"the backend as a variable", "controller: {extraEnv: [{name: QueueGroupPlugin, value: resourcequota}]}",
			[]string{"controller.extraEnv:", "controller.quotaBackend"}},
		{"StrictPriority as a variable", `controller: {extraEnv: [{name: A}, {name: StrictPriority, value: "true"}]}`,
			[]string{"controller.extraEnv:", "controller.policy"}},
		{"StrictConsistency as a variable of the other program", `jobExtensions: {extraEnv: [{name: StrictConsistency, value: "true"}]}`,
			[]string{"jobExtensions.extraEnv:", "controller.policy"}},
	})
}

// The variables have the vendor's names, and users edit them. So the Deployment has them, whichever of its two names
// sets the value.
func TestThePolicyAndTheBackendHaveTwoNames(t *testing.T) {
	for ours, vendors := range map[string]string{
		"controller.policy=Block":               "controller.strictPriority=true",
		"controller.policy=Priority":            "controller.strictConsistency=true",
		"controller.policy=RoundRobin":          "controller.strictPriority=false",
		"controller.quotaBackend=resourcequota": "controller.queueGroupPlugin=resourcequota",
		"controller.quotaBackend=elasticquota":  "controller.queueGroupPlugin=elasticquota",
	} {
		one, other := render(t, onlyEnabled, "--set", ours), render(t, onlyEnabled, "--set", vendors)
		if !reflect.DeepEqual(one, other) {
			t.Errorf("%s and %s render other manifests", ours, vendors)
		}
	}
	expectRefused(t, []refused{
		{"two policies", "controller: {policy: Block, strictConsistency: true}", []string{"controller.policy is Block", "controller.strictConsistency mean Priority", "set them to false"}},
		{"two backends", "controller: {quotaBackend: resourcequota, queueGroupPlugin: elasticquota}",
			[]string{"controller.quotaBackend is resourcequota", `set controller.queueGroupPlugin to ""`}},
	})
}

func TestAPolicyWithoutAVariableIsAFlag(t *testing.T) {
	require.Says(t, "the Deployment", the(t, render(t, "--set", "controller.policy=ShortestFirst"), "Deployment", controller).text, `"--policy=ShortestFirst"`)
}

func TestOtherSettingsAreUnchanged(t *testing.T) {
	rendered := render(t, "--set-json", inline(t, `
controller:
  config: {policyOf: mine, metrics: {secure: false}, health: null, backoff: {max: 1m}}
  extraArgs: [--pause-borrowing, --namespaced]
  extraEnv: [{name: GOGC, value: "50"}]
`))
	require.Says(t, "the file", the(t, rendered, "ConfigMap", controller).labels("data")["config.yaml"], "secure: false")
	require.Says(t, "the Deployment", the(t, rendered, "Deployment", controller).text, `"--pause-borrowing"`, "GOGC")
}

// One value configures the devices of both programs.
func TestTheProgramsReadTheFilesThatTheChartRenders(t *testing.T) {
	rendered := render(t, "--set-json", inline(t, `
devices:
  classes: {gpu.example.com: example.com/gpu, gpu.example.com/memory: example.com/gpu-memory}
  types: [{resource: example.com/gpu, nodeLabel: model, nodeLabelValue: h100, type: gpu/h100}, {resource: example.com/gpu, type: gpu/any}]
controller: {config: {workers: 9}}
jobExtensions: {config: {additionalResources: [{namespaces: [a, "*"], requests: {cpu: 0.5, memory: 134217728}}]}}
`))
	controlled, extended := controlleroptions.New(), extensionsoptions.New()
	for name, p := range map[string]program.Program{controller: controlled.Program(), extensions: extended.Program()} {
		readFile(t, p, the(t, rendered, "ConfigMap", name).labels("data")["config.yaml"])
		require.Says(t, name, the(t, rendered, "Deployment", name).text, `"--config=/etc/kube-queue/config.yaml"`)
	}
	types := map[corev1.ResourceName]requests.Types{"example.com/gpu": {
		Names: map[string]map[string]corev1.ResourceName{"model": {"h100": "gpu/h100"}}, Default: "gpu/any",
	}}
	want := requests.Rules{Types: types, Classes: map[string]corev1.ResourceName{"gpu.example.com": "example.com/gpu", "gpu.example.com/memory": "example.com/gpu-memory"}}
	if got := controlled.Devices.Rules; !reflect.DeepEqual(got, want) || controlled.Workers != 9 {
		t.Errorf("the controller has rules %v and %d workers", got, controlled.Workers)
	}
	if got := extended.Devices.Rules; !reflect.DeepEqual(got, want) {
		t.Errorf("job-extensions has rules %v", got)
	}
	each := corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse("500m"), "memory": resource.MustParse("128Mi")}, Limits: corev1.ResourceList{}}
	if got := extended.Additional; !equality.Semantic.DeepEqual(got, requests.Additional{"a": each, "*": each}) {
		t.Errorf("job-extensions adds %v", got)
	}
}

// readFile sets the options of a program by a configuration file.
func readFile(t *testing.T, p program.Program, text string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "config.yaml")
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	set, err := program.Settings(p)
	require.NoError(t, err)
	if err := set.Read([]string{"--config=" + file}, nil); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
}
