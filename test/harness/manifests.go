package harness

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"
)

// Apply applies a manifest in the Env's namespace like kubectl, but waits until an object that is being deleted
// is gone. It runs kubectl only for objects that exist: a process for each job would take more time than most tests.
func (l *Env) Apply(manifest string) {
	l.t.Helper()
	for _, object := range l.parse(manifest) {
		text := l.asApplied(object)
		client := l.clientOf(object)
		exists := false
		Eventually(l.t, time.Minute, object.GetName()+", which is being deleted, is gone", func() (bool, string) {
			_, err := client.Create(l.t.Context(), object, strict)
			if !apierrors.IsAlreadyExists(err) {
				Must(l.t, err)
				return true, ""
			}
			existing, err := client.Get(l.t.Context(), object.GetName(), metav1.GetOptions{})
			exists = err == nil && existing.GetDeletionTimestamp() == nil
			return exists, fmt.Sprint("it exists: ", err)
		})
		if !exists {
			continue
		}
		if out, err := l.suite.KubectlWith(l.t.Context(), text, "-n", l.Namespace, "apply", "-f", "-"); err != nil {
			l.t.Fatal(err, out)
		}
	}
}

// asApplied sets the annotation in which kubectl apply records what it has applied, and returns its value.
func (l *Env) asApplied(object *unstructured.Unstructured) (text string) {
	l.t.Helper()
	bytes, err := object.MarshalJSON()
	Must(l.t, err)
	annotations := object.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[corev1.LastAppliedConfigAnnotation] = string(bytes)
	object.SetAnnotations(annotations)
	return string(bytes)
}

// parse reads the objects of a manifest.
func (l *Env) parse(manifest string) (objects []*unstructured.Unstructured) {
	l.t.Helper()
	decoder := utilyaml.NewYAMLOrJSONDecoder(strings.NewReader(manifest), len(manifest))
	for {
		object := &unstructured.Unstructured{}
		err := decoder.Decode(&object.Object)
		if errors.Is(err, io.EOF) {
			return objects
		}
		Must(l.t, err)
		if len(object.Object) > 0 {
			objects = append(objects, object)
		}
	}
}

var strict = metav1.CreateOptions{FieldValidation: metav1.FieldValidationStrict}

// clientOf returns a client for the Env's namespace if the object is namespaced and names no other one.
func (l *Env) clientOf(object *unstructured.Unstructured) dynamic.ResourceInterface {
	l.t.Helper()
	mapping, err := l.suite.mapping(object.GroupVersionKind())
	Must(l.t, err)
	if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
		return l.Dynamic.Resource(mapping.Resource).Namespace(cmp.Or(object.GetNamespace(), l.Namespace))
	}
	return l.Dynamic.Resource(mapping.Resource)
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
	object := l.parse(manifest)[0]
	created, err := l.clientOf(object).Create(l.t.Context(), object, strict)
	Must(l.t, err)
	return created.GetName()
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
	Must(l.t, l.Dynamic.Resource(resource).Namespace(l.Namespace).Delete(l.t.Context(), name, metav1.DeleteOptions{PropagationPolicy: new(metav1.DeletePropagationBackground)}))
}

// Amounts parses a resource list in YAML.
func Amounts(t testing.TB, text string) corev1.ResourceList {
	t.Helper()
	amounts := corev1.ResourceList{}
	Must(t, yaml.Unmarshal([]byte(text), &amounts))
	return amounts
}
