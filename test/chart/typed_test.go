package chart

import (
	"reflect"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/client-go/kubernetes/scheme"
)

// untyped are the kinds without Go types in the dependencies.
var untyped = map[string]bool{"CustomResourceDefinition": true, "ServiceMonitor": true, "PrometheusRule": true, "Certificate": true, "Issuer": true}

var decoder = serializer.NewCodecFactory(scheme.Scheme, serializer.EnableStrict).UniversalDeserializer()

// expectKnown decodes an object strictly.
func expectKnown(t *testing.T, o object) {
	t.Helper()
	if untyped[o.GetKind()] {
		return
	}
	if _, _, err := decoder.Decode([]byte(o.text), nil, nil); err != nil {
		t.Errorf("%v: %v", o, err)
	}
}

func TestAllRenderedFieldsAreKnown(t *testing.T) {
	for _, test := range cases {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			for _, o := range render(t, append(test.args, "--values", values(test.name))...) {
				expectKnown(t, o)
			}
		})
	}
}

// firstServed is the first minor version of Kubernetes that serves a kind, if it is not the oldest that the chart
// accepts.
var firstServed = map[string]int{"MutatingAdmissionPolicy": 36, "MutatingAdmissionPolicyBinding": 36}

// The versions are those that docs/operations/install.md names and those that platforms report. Each platform serves
// each rendered object, and accepts its name and labels.
func TestTheChartIsValidOnEachPlatform(t *testing.T) {
	for platform, reported := range map[string]string{
		"Kubernetes 1.30": "v1.30.14", "Kubernetes 1.34": "v1.34.10", "Kubernetes 1.36": "v1.36.3", "Kubernetes 1.37": "v1.37.0", "kind": "v1.36.1",
		"GKE": "v1.34.3-gke.1245000", "EKS": "v1.36.2-eks-3025e55", "AKS": "v1.35.1", "OpenShift": "v1.35.4", "k3s": "v1.36.3+k3s1",
	} {
		t.Run(platform, func(t *testing.T) {
			t.Parallel()
			minor := version.MustParseGeneric(reported).Minor()
			for _, args := range [][]string{{}, {"--set", "holdPolicies.by=webhook,networkPolicy.enabled=true"}} {
				for _, o := range render(t, append(args, "--kube-version", reported)...) {
					if first := firstServed[o.GetKind()]; int(minor) < first {
						t.Errorf("%v is served from 1.%d on", o, first)
					}
					for _, fault := range validation.ValidateLabels(o.GetLabels(), field.NewPath(o.String())) {
						t.Error(fault)
					}
					expectKnown(t, o)
				}
			}
		})
	}
}

func TestCRDsAreTheGeneratedOnesWithLabels(t *testing.T) {
	for name, rendered := range kind(render(t), "CustomResourceDefinition") {
		group, _ := rendered.Object["spec"].(map[string]any)["group"].(string)
		file := chart + "/files/crds/" + group + "_" + name[:len(name)-len(group)-1] + ".yaml"
		generated := objects(t, read(t, file))[0]
		if !reflect.DeepEqual(rendered.Object["spec"], generated.Object["spec"]) {
			t.Errorf("the spec of %v is not that of %s", rendered, file)
		}
		if rendered.GetLabels()["app.kubernetes.io/part-of"] != "kube-queue" {
			t.Errorf("%v has labels %v", rendered, rendered.GetLabels())
		}
	}
}

// By default, units and trees remain after an uninstall.
func TestCRDsAreKeptAndEnabledSeparately(t *testing.T) {
	const trees, units = "elasticquotatrees.scheduling.sigs.k8s.io", "queueunits.scheduling.x-k8s.io"
	const queues, checks = "queues.scheduling.x-k8s.io", "admissionchecks.scheduling.x-k8s.io"
	const configs = "provisioningrequestconfigs.scheduling.x-k8s.io"
	reviews := []string{"queueunitreviews.visibility.kube-queue.dev", "queuereviews.visibility.kube-queue.dev",
		"quotareviews.visibility.kube-queue.dev"}
	with := func(names ...string) []string { return append(names, reviews...) }
	tests := []struct {
		set  string
		want []string
		kept bool
	}{
		{"crds.enabled=true", with(trees, units, queues, checks, configs), true},
		{"crds.keep=false", with(trees, units, queues, checks, configs), false},
		{"crds.elasticQuotaTree=false", with(units, queues, checks, configs), true},
		{"crds.queueUnit=false", with(trees, queues, checks, configs), true},
		{"crds.queue=false", with(trees, units, configs), true},
		{"crds.provisioningRequestConfig=false", with(trees, units, queues, checks), true},
		{"crds.reviews=false", []string{trees, units, queues, checks, configs}, true},
		{"crds.enabled=false", nil, true},
	}
	for _, test := range tests {
		t.Run(test.set, func(t *testing.T) {
			t.Parallel()
			crds := kind(render(t, "--set", test.set), "CustomResourceDefinition")
			if len(crds) != len(test.want) {
				t.Errorf("there are %d CRDs, want %v", len(crds), test.want)
			}
			for _, name := range test.want {
				crd, there := crds[name]
				if kept := crd.GetAnnotations()["helm.sh/resource-policy"] == "keep"; !there || kept != (test.kept && !slices.Contains(reviews, name)) {
					t.Errorf("%s: there is %t, kept is %t", name, there, kept)
				}
			}
		})
	}
}

func TestAReleaseCanHaveAnyName(t *testing.T) {
	for _, name := range []string{"2024", "1e3", "true"} {
		out, err := run(t, "template", name, chart, "--namespace", "kube-queue", "--kube-version", "1.36.0")
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range objects(t, out) {
			expectKnown(t, o)
			if got := o.GetLabels()["app.kubernetes.io/instance"]; got != name {
				t.Errorf("%v has instance %q, want %q", o, got, name)
			}
		}
	}
}
