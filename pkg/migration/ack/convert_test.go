package ack_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"kube-queue.dev/kube-queue/pkg/migration"
	"kube-queue.dev/kube-queue/pkg/migration/ack"
	"kube-queue.dev/kube-queue/pkg/migration/migrationtest"
	"kube-queue.dev/kube-queue/test/require"
)

func TestConvertedObjectsAreThoseOfTheGoldenFiles(t *testing.T) { migrationtest.Golden(t, ack.Convert) }

func TestDamagedObjectsAreConvertedOrRefused(t *testing.T) { migrationtest.Damage(t, ack.Convert) }

func controller(field string) string {
	return `{apiVersion: apps/v1, kind: Deployment, metadata: {name: kube-queue-controller}, spec: {template: {spec: {containers: [{` + field + `}]}}}}`
}

func elasticQuota(name, labels, spec string) string {
	return `{apiVersion: scheduling.sigs.k8s.io/v1alpha1, kind: ElasticQuota, metadata: {name: ` + name + `, namespace: a, labels: {` + labels + `}}, spec: {` + spec + "}}\n---\n"
}

func TestInputThatCannotBeConvertedIsRefused(t *testing.T) {
	const parent = "quota.scheduling.koordinator.sh/parent: "
	const tree = `{apiVersion: scheduling.sigs.k8s.io/v1beta1, kind: ElasticQuotaTree, metadata: {name: t, namespace: kube-system}, spec: {root: ROOT}}`
	for name, test := range map[string]struct{ input, fault string }{
		"a tree with a min above its max":       {strings.Replace(tree, "ROOT", "{name: r, min: {cpu: 2}, max: {cpu: 1}}", 1), "input: document 1: ElasticQuotaTree kube-system/t: r: min cpu 2 is above max 1"},
		"a tree of another version":             {strings.Replace(strings.Replace(tree, "ROOT", "{name: r}", 1), "v1beta1", "v1", 1), "set it to scheduling.sigs.k8s.io/v1beta1"},
		"a quantity that is unreadable":         {strings.Replace(tree, "ROOT", "{name: r, max: {cpu: plenty}}", 1), `quantity "plenty"`},
		"a field of a node that is unknown":     {strings.Replace(tree, "ROOT", "{name: r, mx: {cpu: 1}}", 1), `unknown field "mx"`},
		"a quota backend that does not exist":   {controller(`env: [{name: QueueGroupPlugin, value: elastic}]`), `env: QueueGroupPlugin: the quota backend "elastic" is unknown`},
		"a mode that is neither true nor false": {controller(`env: [{name: StrictPriority, value: maybe}]`), `env: StrictPriority: "maybe" is neither true nor false`},
		"an oversell rate that is no number":    {controller(`args: [--oversellrate=much]`), "--oversellrate"},
		"a backoff below a second":              {controller(`args: [--podMaxBackoffSeconds=0]`), `--podMaxBackoffSeconds: "0" is no number of seconds`},
		"arguments that are no texts":           {controller(`args: [{a: b}]`), "Deployment kube-queue-controller: args"},
		"a container that is not an object":     {`{apiVersion: apps/v1, kind: Deployment, metadata: {name: job-extensions}, spec: {template: {spec: {containers: [a]}}}}`, "a container is not an object"},
		"a priority that overflows":             {`{apiVersion: scheduling.x-k8s.io/v1alpha1, kind: Queue, metadata: {name: q, namespace: kube-queue}, spec: {priority: 3000000000}}`, "spec.priority 3000000000 is no integer of 32 bits"},
		"checks that are no list":               {`{apiVersion: scheduling.x-k8s.io/v1alpha1, kind: Queue, metadata: {name: q, namespace: kube-queue}, spec: {admissionChecks: a}}`, "spec.admissionChecks is no list"},
		"an ElasticQuota that is there twice":   {elasticQuota("q", "", "") + elasticQuota("q", "", ""), "ElasticQuota a/q has the same name"},
		"a parent that is missing":              {elasticQuota("q", parent+"gone", ""), `the input has no ElasticQuota "gone", which is its parent`},
		"ElasticQuotas in a circle":             {elasticQuota("p", parent+"q", "") + elasticQuota("q", parent+"p", ""), "ElasticQuota a/p: the ElasticQuota is its own ancestor"},
		"ElasticQuotas with too much min":       {elasticQuota("p", "", "max: {cpu: 3}") + elasticQuota("q", parent+"p", "min: {cpu: 4}"), "the ElasticQuotas make an invalid tree: koordinator-root-quota/p: the sum of the children's min cpu, 4 (q 4), is above max 3"},
		"a tree and ElasticQuotas":              {strings.Replace(tree, "ROOT", "{name: r}", 1) + "\n---\n" + elasticQuota("q", "", ""), "the input has ElasticQuotas, too"},
	} {
		t.Run(name, func(t *testing.T) {
			result, err := ack.Convert(migrationtest.Read(t, test.input))
			if err == nil || result != nil || !strings.Contains(err.Error(), test.fault) {
				t.Errorf("the result is %v and the error %v, want %q", result, err, test.fault)
			}
		})
	}
}

func TestFlagsInTheScriptOfAShellAreConverted(t *testing.T) {
	for _, field := range []string{`command: [/bin/sh, -c, "exec /kube-queue \\\n  --oversellrate=1.2 --qps 50"]`, `command: [bash, -ec], args: ["/kube-queue --oversellrate '1.2'"]`} {
		result, err := ack.Convert(migrationtest.Read(t, controller(field)))
		require.NoError(t, err)
		if !strings.Contains(fmt.Sprint(result.Values), "oversellRate:1.2") || slices.ContainsFunc(result.Findings, func(f migration.Finding) bool { return strings.HasPrefix(f.Field, "--") }) {
			t.Errorf("%s: values %v, findings %v", field, result.Values, result.Findings)
		}
	}
}

func TestAQueueKeepsThePolicyOfItsElasticQuotaAndListsACheckOnce(t *testing.T) {
	const queue = `{apiVersion: scheduling.x-k8s.io/v1alpha1, kind: Queue, metadata: {name: NAME, namespace: koord-queue}, spec: {priority: 5, admissionChecks: [{name: a, labelSelector: {matchLabels: {x: "1"}}}, {name: a}, {name: b}]}}`
	result, err := ack.Convert(migrationtest.Read(t, elasticQuota("q", "koord-queue/queue-policy: Block", "max: {cpu: 3}")+
		strings.Replace(queue, "NAME", "q", 1)+"\n---\n"+strings.Replace(queue, "NAME", "root-q", 1)))
	require.NoError(t, err)
	if got := fmt.Sprint(result.Objects[0].Object["spec"]); got != "map[admissionChecks:[a b] policy:Block priority:5]" {
		t.Errorf("the Queue has %s", got)
	}
	if !slices.ContainsFunc(result.Findings, func(f migration.Finding) bool {
		return f.Object == "Queue koord-queue/root-q" && f.Field == "metadata.name"
	}) {
		t.Errorf("the second Queue of the node is dropped silently: %v", result.Findings)
	}
}

func TestAJobWhoseOnlyMarkIsItsSuspendFieldIsNotLost(t *testing.T) {
	const head = "{apiVersion: kubeflow.org/v1, kind: TFJob, metadata: {name: j"
	for input, want := range map[string]int{
		head + "}, spec: {runPolicy: {suspend: true}}}": 1,
		head + "}, spec: {suspend: true}}":              1,
		head + "}, spec: {}}":                           0,
		head + ", labels: {kueue.x-k8s.io/queue-name: q}}, spec: {runPolicy: {suspend: true}}}": 0,
		"{apiVersion: batch/v1, kind: CronJob, metadata: {name: j}, spec: {suspend: true}}":     0,
	} {
		result, err := ack.Convert(migrationtest.Read(t, input))
		require.NoError(t, err)
		if len(result.Objects) != want {
			t.Errorf("%s: %d objects are written", input, len(result.Objects))
		}
	}
}

func TestObjectsThatAreNotConvertedAreFindings(t *testing.T) {
	const former = `{labels: {quota.scheduling.koordinator.sh/name: q}, annotations: {scheduling.x-k8s.io/suspend: "true"}}`
	for name, test := range map[string]struct {
		input    string
		findings int
	}{
		"a CronJob":             {`{apiVersion: batch/v1, kind: CronJob, metadata: {name: a}, spec: {jobTemplate: {metadata: ` + former + `}}}`, 1},
		"an MPIJob of ACK":      {`{apiVersion: kubeflow.org/v1alpha1, kind: MPIJob, metadata: {name: a, annotations: {scheduling.x-k8s.io/suspend: "true"}}}`, 1},
		"a CronJob of somebody": {`{apiVersion: batch/v1, kind: CronJob, metadata: {name: a}, spec: {}}`, 0},
	} {
		t.Run(name, func(t *testing.T) {
			result, err := ack.Convert(migrationtest.Read(t, test.input))
			require.NoError(t, err)
			if len(result.Findings) != test.findings {
				t.Errorf("the findings are %v", result.Findings)
			}
		})
	}
}
