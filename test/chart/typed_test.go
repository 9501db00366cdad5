package chart

import (
	"reflect"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/kubernetes/scheme"
)

// untyped are the kinds without Go types in the dependencies.
var untyped = map[string]bool{"CustomResourceDefinition": true, "ServiceMonitor": true, "PrometheusRule": true, "Certificate": true, "Issuer": true}

func TestAllRenderedFieldsAreKnown(t *testing.T) {
	decoder := serializer.NewCodecFactory(scheme.Scheme, serializer.EnableStrict).UniversalDeserializer()
	for _, test := range cases {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			for _, o := range render(t, append(test.args, "--values", values(test.name))...) {
				if untyped[o.GetKind()] {
					continue
				}
				if _, _, err := decoder.Decode([]byte(o.text), nil, nil); err != nil {
					t.Errorf("%v: %v", o, err)
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

// By default units and trees remain after an uninstall.
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
				if kept := crd.GetAnnotations()["helm.sh/resource-policy"] == "keep"; !there || kept != test.kept {
					t.Errorf("%s: there is %t, kept is %t", name, there, kept)
				}
			}
		})
	}
}
