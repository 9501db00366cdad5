package raycluster

import (
	"testing"

	rayv1 "github.com/ray-project/kuberay/ray-operator/apis/ray/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kube-queue.dev/kube-queue/extensions/framework/adaptertest"
)

func TestClusters(t *testing.T) { adaptertest.Run(t, New()) }

func TestDamagedClusters(t *testing.T) { adaptertest.Fuzz(t, New()) }

func TestClustersThatTheOperatorRejectsAreInvalid(t *testing.T) {
	template := corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "ray"}}}}
	params, resources := map[string]string{"num-cpus": "1"}, map[string]string{"CPU": "1"}
	for name, test := range map[string]struct {
		change func(head *rayv1.HeadGroupSpec, workers *rayv1.WorkerGroupSpec)
		scales bool
		fault  bool
	}{
		"nothing is wrong":                    {func(*rayv1.HeadGroupSpec, *rayv1.WorkerGroupSpec) {}, true, false},
		"a suspended group":                   {func(_ *rayv1.HeadGroupSpec, w *rayv1.WorkerGroupSpec) { w.Suspend = new(true) }, false, false},
		"a suspended group and an autoscaler": {func(_ *rayv1.HeadGroupSpec, w *rayv1.WorkerGroupSpec) { w.Suspend = new(true) }, true, true},
		"resources of the head in both places": {func(h *rayv1.HeadGroupSpec, _ *rayv1.WorkerGroupSpec) {
			h.RayStartParams, h.Resources = params, resources
		}, false, true},
		"labels in parameters": {func(h *rayv1.HeadGroupSpec, _ *rayv1.WorkerGroupSpec) {
			h.RayStartParams = map[string]string{"labels": "a=b"}
		}, false, true},
		"a restart of the head by version v2 of the autoscaler": {func(h *rayv1.HeadGroupSpec, _ *rayv1.WorkerGroupSpec) {
			h.Template.Spec.RestartPolicy = corev1.RestartPolicyAlways
		}, true, true},
		"a restart of workers": {func(_ *rayv1.HeadGroupSpec, w *rayv1.WorkerGroupSpec) {
			w.Template.Spec.RestartPolicy = corev1.RestartPolicyOnFailure
		}, true, true},
		"a restart without an autoscaler": {func(_ *rayv1.HeadGroupSpec, w *rayv1.WorkerGroupSpec) {
			w.Template.Spec.RestartPolicy = corev1.RestartPolicyAlways
		}, false, false},
		"no restart": {func(_ *rayv1.HeadGroupSpec, w *rayv1.WorkerGroupSpec) {
			w.Template.Spec.RestartPolicy = corev1.RestartPolicyNever
		}, true, false},
		"a negative time of workers": {func(_ *rayv1.HeadGroupSpec, w *rayv1.WorkerGroupSpec) { w.IdleTimeoutSeconds = new(int32(-1)) }, true, true},
		"resources of the workers in both places": {func(_ *rayv1.HeadGroupSpec, w *rayv1.WorkerGroupSpec) {
			w.RayStartParams, w.Resources = params, resources
		}, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			cluster := &rayv1.RayCluster{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Spec: rayv1.RayClusterSpec{EnableInTreeAutoscaling: &test.scales,
				AutoscalerOptions: &rayv1.AutoscalerOptions{Version: new(rayv1.AutoscalerVersionV2)},
				HeadGroupSpec:     rayv1.HeadGroupSpec{Template: template}, WorkerGroupSpecs: []rayv1.WorkerGroupSpec{{GroupName: "g", Template: template}}}}
			test.change(&cluster.Spec.HeadGroupSpec, &cluster.Spec.WorkerGroupSpecs[0])
			if _, err := New().Pods(cluster); (err != nil) != test.fault {
				t.Errorf("the fault is %v", err)
			}
		})
	}
}

func TestOptionsThatTheOperatorRejectsAreInvalid(t *testing.T) {
	template := corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "ray"}}}}
	token := rayv1.AuthOptions{Mode: rayv1.AuthModeToken}
	for name, test := range map[string]struct {
		version string
		auth    rayv1.AuthOptions
		idle    int32
		fault   bool
	}{
		"no options":                   {"", rayv1.AuthOptions{}, 0, false},
		"a negative time":              {"", rayv1.AuthOptions{}, -1, true},
		"a token":                      {"2.52.0", token, 0, false},
		"a token in an old version":    {"2.51.9", token, 0, true},
		"a token in no version":        {"", token, 0, true},
		"Kubernetes":                   {"2.55.0", rayv1.AuthOptions{Mode: token.Mode, EnableK8sTokenAuth: new(true)}, 0, false},
		"Kubernetes in an old version": {"2.54.0", rayv1.AuthOptions{Mode: token.Mode, EnableK8sTokenAuth: new(true)}, 0, true},
		"Kubernetes without a token":   {"2.55.0", rayv1.AuthOptions{EnableK8sTokenAuth: new(true)}, 0, true},
		"Kubernetes and a Secret":      {"2.55.0", rayv1.AuthOptions{Mode: token.Mode, EnableK8sTokenAuth: new(true), SecretName: new("s")}, 0, true},
	} {
		cluster := &rayv1.RayCluster{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Spec: rayv1.RayClusterSpec{RayVersion: test.version,
			AuthOptions: &test.auth, AutoscalerOptions: &rayv1.AutoscalerOptions{IdleTimeoutSeconds: &test.idle},
			HeadGroupSpec: rayv1.HeadGroupSpec{Template: template}}}
		if _, err := New().Pods(cluster); (err != nil) != test.fault {
			t.Errorf("%s: the fault is %v", name, err)
		}
	}
}
