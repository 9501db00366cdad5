package harness

import (
	"fmt"
	"os"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"
)

// Apply applies a manifest in the Env's namespace.
func (l *Env) Apply(manifest string) {
	l.t.Helper()
	if out, err := l.suite.KubectlWith(l.t.Context(), manifest, "-n", l.Namespace, "apply", "-f", "-"); err != nil {
		l.t.Fatal(err, out)
	}
}

// ApplyAsIs applies a manifest that contains its namespace.
func (l *Env) ApplyAsIs(manifest string) {
	l.t.Helper()
	if out, err := l.suite.KubectlWith(l.t.Context(), manifest, "apply", "-f", "-"); err != nil {
		l.t.Fatal(err, out)
	}
}

// Create creates the object of a manifest with generateName, and returns its name.
func (l *Env) Create(manifest string) string {
	l.t.Helper()
	out, err := l.suite.KubectlWith(l.t.Context(), manifest, "-n", l.Namespace, "create", "-o", "name", "-f", "-")
	if err != nil {
		l.t.Fatal(err, out)
	}
	_, name, _ := strings.Cut(strings.TrimSpace(out), "/")
	return name
}

func (l *Env) Read(file string) string {
	l.t.Helper()
	text, err := os.ReadFile(l.suite.Acceptance(file))
	Must(l.t, err)
	return string(text)
}

// Patch applies a merge patch to an object.
func (l *Env) Patch(resource schema.GroupVersionResource, name, patch string) {
	l.t.Helper()
	_, err := l.Dynamic.Resource(resource).Namespace(l.Namespace).Patch(l.t.Context(), name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	Must(l.t, err)
}

// Delete deletes an object with background propagation.
func (l *Env) Delete(resource schema.GroupVersionResource, name string) {
	l.t.Helper()
	background := metav1.DeletePropagationBackground
	Must(l.t, l.Dynamic.Resource(resource).Namespace(l.Namespace).Delete(l.t.Context(), name, metav1.DeleteOptions{PropagationPolicy: &background}))
}

// ConfigMap returns an empty ConfigMap, for example to own objects.
func ConfigMap(name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

// Amounts parses a resource list in YAML.
func Amounts(t testing.TB, text string) corev1.ResourceList {
	t.Helper()
	amounts := corev1.ResourceList{}
	Must(t, yaml.Unmarshal([]byte(text), &amounts))
	return amounts
}

// MarkedJob is the manifest of a Job of one pod with the annotation that marks it.
func MarkedJob(namespace, name, cpu string) string {
	return fmt.Sprintf(`
apiVersion: batch/v1
kind: Job
metadata: {name: %s, namespace: %s, annotations: {scheduling.x-k8s.io/suspend: "true"}}
spec:
  template:
    spec:
      restartPolicy: Never
      containers: [{name: main, image: busybox, resources: {requests: {cpu: %q}}}]
`, name, namespace, cpu)
}
