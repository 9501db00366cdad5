package kueue_test

import (
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"kube-queue.dev/kube-queue/pkg/migration"
	"kube-queue.dev/kube-queue/pkg/migration/kueue"
	"kube-queue.dev/kube-queue/pkg/migration/migrationtest"
	"kube-queue.dev/kube-queue/test/require"
)

func TestConvertedObjectsAreThoseOfTheGoldenFiles(t *testing.T) {
	migrationtest.Golden(t, kueue.Convert)
}

func TestDamagedObjectsAreConvertedOrRefused(t *testing.T) { migrationtest.Damage(t, kueue.Convert) }

const queueOf = `{apiVersion: kueue.x-k8s.io/v1beta2, kind: ClusterQueue, metadata: {name: NAME}, spec: {cohortName: all, namespaceSelector: {}, resourceGroups: [{coveredResources: [cpu], flavors: [{name: f, resources: [{name: cpu, nominalQuota: AMOUNT}]}]}]}}`

func clusterQueue(name, amount string) string {
	return strings.NewReplacer("NAME", name, "AMOUNT", amount).Replace(queueOf)
}

func TestInputThatCannotBeConvertedIsRefused(t *testing.T) {
	for name, test := range map[string]struct{ input, fault string }{
		"a version that is too old":        {`{apiVersion: kueue.x-k8s.io/v1alpha1, kind: Cohort, metadata: {name: a}}`, "input: document 1: Cohort a: the version kueue.x-k8s.io/v1alpha1 is not supported; export the object as kueue.x-k8s.io/v1beta1 or kueue.x-k8s.io/v1beta2"},
		"a version that does not exist":    {`{apiVersion: kueue.x-k8s.io/v9, kind: ClusterQueue, metadata: {name: a}}`, "the version kueue.x-k8s.io/v9 is not supported"},
		"a kind that does not exist":       {`{apiVersion: kueue.x-k8s.io/v1beta1, kind: ClusterCue, metadata: {name: a}}`, "ClusterCue a: the kind is unknown"},
		"an object without a name":         {`{apiVersion: kueue.x-k8s.io/v1beta1, kind: ClusterQueue}`, "the object has no name; set metadata.name"},
		"a LocalQueue without a namespace": {clusterQueue("a", "1") + "\n---\n" + `{apiVersion: kueue.x-k8s.io/v1beta1, kind: LocalQueue, metadata: {name: q}, spec: {clusterQueue: a}}`, "LocalQueue q: the LocalQueue has no namespace"},
		"an object that is there twice":    {clusterQueue("a", "1") + "\n---\n" + clusterQueue("a", "2"), "ClusterQueue a: the object is in the input twice"},
		"an unreadable quantity":           {clusterQueue("a", "plenty"), `ClusterQueue a: flavor "f": nominalQuota: cpu: quantity "plenty" is not a number`},
		"a quantity of another type":       {clusterQueue("a", "[1]"), "is no quantity"},
		"a quantity that is missing":       {clusterQueue("a", "null"), "is not a number"},
		"a negative quantity":              {clusterQueue("a", "-1"), "cpu: -1 is negative"},
		"a monstrous exponent":             {clusterQueue("a", `"1e1000000000"`), "the exponent must be an integer"},
		"a quantity that overflows":        {clusterQueue("a", `"10E"`), `cpu: "10E" exceeds the largest amount`},
		"a sum that overflows":             {clusterQueue("a", "5P") + "\n---\n" + clusterQueue("b", "5P"), "Cohort all: the quotas of cpu add up to more than the largest amount"},
		"a cohort in a circle":             {"{apiVersion: kueue.x-k8s.io/v1beta2, kind: Cohort, metadata: {name: a}, spec: {parentName: b}}\n---\n{apiVersion: kueue.x-k8s.io/v1beta2, kind: Cohort, metadata: {name: b}, spec: {parentName: a}}", "Cohort a: the Cohort is its own ancestor"},
		"a cohort that is its own parent":  {"{apiVersion: kueue.x-k8s.io/v1beta2, kind: Cohort, metadata: {name: a}, spec: {parentName: a}}", "Cohort a: the Cohort is its own ancestor"},
		"a spec that is a list":            {`{apiVersion: kueue.x-k8s.io/v1beta2, kind: Cohort, metadata: {name: a}, spec: []}`, "cannot read the object"},
		"a broken selector":                {`{apiVersion: kueue.x-k8s.io/v1beta2, kind: ClusterQueue, metadata: {name: a}, spec: {namespaceSelector: {matchExpressions: [{key: x, operator: Near}]}}}` + "\n---\n" + `{apiVersion: kueue.x-k8s.io/v1beta1, kind: LocalQueue, metadata: {name: q, namespace: ns}, spec: {clusterQueue: a}}`, "the namespaceSelector of ClusterQueue a"},
		"a flavor with a resource twice":   {`{apiVersion: kueue.x-k8s.io/v1beta2, kind: Cohort, metadata: {name: a}, spec: {resourceGroups: [{flavors: [{name: f, resources: [{name: cpu, nominalQuota: 1}, {name: cpu, nominalQuota: 1}]}]}]}}`, `flavor "f" lists cpu twice`},
	} {
		t.Run(name, func(t *testing.T) {
			result, err := kueue.Convert(migrationtest.Read(t, test.input))
			if err == nil || result != nil || !strings.Contains(err.Error(), test.fault) {
				t.Errorf("the result is %v and the error %v, want %q", result, err, test.fault)
			}
		})
	}
}

func TestAReferenceToAnObjectThatIsMissingIsAFinding(t *testing.T) {
	result, err := kueue.Convert(migrationtest.Read(t, clusterQueue("a", "1")+"\n---\n"+
		`{apiVersion: kueue.x-k8s.io/v1beta1, kind: LocalQueue, metadata: {name: q, namespace: ns}, spec: {clusterQueue: gone}}`+"\n---\n"+
		`{apiVersion: kueue.x-k8s.io/v1alpha1, kind: Topology, metadata: {name: t}, spec: {levels: []}}`))
	require.NoError(t, err)
	for _, want := range []string{"knows no topology", "the input has no ResourceFlavor of this name", `the input has no ClusterQueue "gone"`} {
		if !slices.ContainsFunc(result.Findings, func(f migration.Finding) bool { return strings.Contains(f.Why, want) }) {
			t.Errorf("no finding says %q: %v", want, result.Findings)
		}
	}
	// In Kueue, a cohort exists without an object if a queue names it.
	if slices.ContainsFunc(result.Findings, func(f migration.Finding) bool { return strings.Contains(f.String(), "Cohort") }) {
		t.Errorf("the cohort is a finding: %v", result.Findings)
	}
}

func TestTheOrderOfTheInputChangesNothing(t *testing.T) {
	documents := migrationtest.Read(t, clusterQueue("c", "1")+"\n---\n"+clusterQueue("a", "2")+"\n---\n"+clusterQueue("b", "3"))
	first, err := kueue.Convert(documents)
	require.NoError(t, err)
	slices.Reverse(documents)
	second, err := kueue.Convert(documents)
	require.NoError(t, err)
	if a, b := migrationtest.Text(t, first), migrationtest.Text(t, second); a != b {
		t.Errorf("the results differ:\n%s\n%s", a, b)
	}
}

func TestTheDefaultsOfWaitingForPodsAreThoseOfTheVersion(t *testing.T) {
	for name, test := range map[string]struct {
		version, wait, timeout string
		blocks                 bool
	}{
		"the older one is off":                {"v1beta1", "{timeout: 10m}", "", false},
		"the older one blocks":                {"v1beta1", "{enable: true, timeout: 10m}", "10m", true},
		"the older one, which does not block": {"v1beta1", "{enable: true, timeout: 10m, blockAdmission: false}", "10m", false},
		"the newer one":                       {"v1beta2", "{timeout: 10m}", "10m", false},
	} {
		t.Run(name, func(t *testing.T) {
			result, err := kueue.Convert(migrationtest.Read(t, clusterQueue("a", "1")+"\n---\n"+
				"{apiVersion: config.kueue.x-k8s.io/"+test.version+", kind: Configuration, waitForPodsReady: "+test.wait+"}"))
			require.NoError(t, err)
			var timeout string
			var blocks bool
			for _, object := range result.Objects {
				if object.GetKind() == "Queue" {
					timeout, _, _ = unstructured.NestedString(object.Object, "spec", "podsReadyTimeout")
					blocks, _, _ = unstructured.NestedBool(object.Object, "spec", "blockUntilPodsReady")
				}
			}
			if timeout != test.timeout || blocks != test.blocks {
				t.Errorf("timeout %q, blocks %v", timeout, blocks)
			}
		})
	}
}

func TestAJobWithoutALocalQueueIsAFinding(t *testing.T) {
	result, err := kueue.Convert(migrationtest.Read(t, clusterQueue("a", "1")+"\n---\n"+
		`{apiVersion: kueue.x-k8s.io/v1beta2, kind: LocalQueue, metadata: {name: default, namespace: ns}, spec: {clusterQueue: a}}`+"\n---\n"+
		`{apiVersion: batch/v1, kind: Job, metadata: {name: j, namespace: ns, labels: {kueue.x-k8s.io/priority-class: high}}, spec: {}}`))
	require.NoError(t, err)
	if !slices.ContainsFunc(result.Findings, func(f migration.Finding) bool { return f.Object == "Job ns/j" }) {
		t.Errorf("the job is dropped silently: %v", result.Findings)
	}
}

func TestAJobOfAQueueThatItsNamespaceMayNotUseGetsNoOtherQuota(t *testing.T) {
	result, err := kueue.Convert(migrationtest.Read(t, clusterQueue("a", "1")+"\n---\n"+strings.Replace(clusterQueue("b", "1"), "namespaceSelector: {}, ", "", 1)+"\n---\n"+
		`{apiVersion: kueue.x-k8s.io/v1beta2, kind: LocalQueue, metadata: {name: a, namespace: ns}, spec: {clusterQueue: a}}`+"\n---\n"+
		`{apiVersion: kueue.x-k8s.io/v1beta2, kind: LocalQueue, metadata: {name: b, namespace: ns}, spec: {clusterQueue: b}}`+"\n---\n"+
		`{apiVersion: batch/v1, kind: Job, metadata: {name: j, namespace: ns, labels: {kueue.x-k8s.io/queue-name: b}}, spec: {}}`))
	require.NoError(t, err)
	if got := result.Objects[len(result.Objects)-1].GetLabels()["kube-queue/quota-name"]; got != "b" {
		t.Errorf("it selects quota %q", got)
	}
}

func TestACheckWithATooLongNameIsNotListed(t *testing.T) {
	name := strings.Repeat("a", 64)
	result, err := kueue.Convert(migrationtest.Read(t, `{apiVersion: kueue.x-k8s.io/v1beta2, kind: AdmissionCheck, metadata: {name: `+name+`}, spec: {controllerName: x}}`+"\n---\n"+
		`{apiVersion: kueue.x-k8s.io/v1beta2, kind: ClusterQueue, metadata: {name: q}, spec: {namespaceSelector: {}, stopPolicy: Hold, admissionChecksStrategy: {admissionChecks: [{name: `+name+`}]}}}`))
	require.NoError(t, err)
	for _, object := range result.Objects {
		if checks, _, _ := unstructured.NestedStringSlice(object.Object, "spec", "admissionChecks"); len(checks) > 0 {
			t.Errorf("%s %s lists %v, which its CRD refuses", object.GetKind(), object.GetName(), checks)
		}
	}
}

func TestOnlyAJobHasAMinimumParallelism(t *testing.T) {
	for kind, want := range map[string]bool{"{apiVersion: batch/v1, kind: Job": true, "{apiVersion: kubeflow.org/v1, kind: PyTorchJob": false} {
		result, err := kueue.Convert(migrationtest.Read(t, clusterQueue("a", "1")+"\n---\n"+kind+
			`, metadata: {name: j, labels: {kueue.x-k8s.io/queue-name: q}, annotations: {kueue.x-k8s.io/job-min-parallelism: "2"}}, spec: {}}`))
		require.NoError(t, err)
		job := result.Objects[len(result.Objects)-1]
		if got := job.GetAnnotations()["kube-queue/min-count"]; (got != "") != want {
			t.Errorf("%s gets the minimum %q", job.GetKind(), got)
		}
	}
}
