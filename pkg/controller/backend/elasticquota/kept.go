package elasticquota

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	quotav1beta1 "kube-queue.dev/kube-queue/apis/quota/v1beta1"
	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	"kube-queue.dev/kube-queue/pkg/quota/tree"
	"kube-queue.dev/kube-queue/pkg/quota/tree/manifest"
)

// revisionPrefix is the prefix of the names of the ControllerRevisions that hold a valid tree. A hash of the content
// follows.
const revisionPrefix = "last-valid-tree-"

// kept is a valid tree in the form in which a ControllerRevision holds it. It never changes.
type kept struct {
	// revision is the name of the ControllerRevision, which is derived from data.
	revision string
	// of is the namespace and name of the tree.
	of string
	// generation is the generation of the tree when it was kept; 0 if unknown. Another generation may have the same
	// content.
	generation int64
	// data is a manifest of the tree, without the fields that the API server sets.
	data map[string]any
	root tree.Node
}

// keep returns the tree in the form to keep.
func keep(object *unstructured.Unstructured, root tree.Node) (*kept, error) {
	data := map[string]any{
		"apiVersion": object.GetAPIVersion(), "kind": object.GetKind(),
		"metadata": map[string]any{"namespace": object.GetNamespace(), "name": object.GetName()},
		"spec":     object.Object["spec"],
	}
	revision, err := revisionOf(data)
	if err != nil {
		return nil, fmt.Errorf("tree %s/%s: %w", object.GetNamespace(), object.GetName(), err)
	}
	return &kept{revision: revision, of: object.GetNamespace() + "/" + object.GetName(), generation: object.GetGeneration(), data: data, root: root}, nil
}

// revisionOf returns the name of the ControllerRevision that holds the data.
func revisionOf(data map[string]any) (string, error) {
	text, err := json.Marshal(data) // keys are sorted
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(text)
	return revisionPrefix + hex.EncodeToString(sum[:16]), nil
}

// object returns the ControllerRevision with a number, in the namespace.
func (k *kept) object(namespace string, number int64) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "apps/v1", "kind": "ControllerRevision", "data": k.data, "revision": number}}
	u.SetNamespace(namespace)
	u.SetName(k.revision)
	u.SetLabels(map[string]string{wellknown.LastValidTreeLabel: "true"})
	u.SetAnnotations(map[string]string{wellknown.TreeGenerationAnnotation: strconv.FormatInt(k.generation, 10)})
	return u
}

// readKept reads a ControllerRevision. The error explains how it is damaged.
func readKept(revision *unstructured.Unstructured) (*kept, error) {
	data, ok := revision.Object["data"].(map[string]any)
	if !ok {
		return nil, errors.New("it has no data")
	}
	switch name, err := revisionOf(data); {
	case err != nil:
		return nil, err
	case name != revision.GetName():
		return nil, errors.New("its data does not have the hash that its name contains")
	}
	object := &unstructured.Unstructured{Object: data}
	if object.GetKind() != "ElasticQuotaTree" || object.GroupVersionKind().Group != quotav1beta1.GroupName {
		return nil, fmt.Errorf("it holds a %s (%s)", object.GetKind(), object.GetAPIVersion())
	}
	generation, err := strconv.ParseInt(revision.GetAnnotations()[wellknown.TreeGenerationAnnotation], 10, 64)
	if err != nil || generation < 0 {
		generation = 0
	}
	return &kept{revision: revision.GetName(), of: object.GetNamespace() + "/" + object.GetName(), generation: generation,
		data: data, root: manifest.Root(object)}, nil
}

// String identifies the tree for a message.
func (k *kept) String() string {
	if k.generation == 0 {
		return fmt.Sprintf("%s, kept as %s", k.of, k.revision)
	}
	return fmt.Sprintf("generation %d of %s, kept as %s", k.generation, k.of, k.revision)
}

// sortRevisions sorts ControllerRevisions from the newest to the oldest.
func sortRevisions(revisions []*unstructured.Unstructured) {
	slices.SortFunc(revisions, func(a, b *unstructured.Unstructured) int {
		at, bt := a.GetCreationTimestamp(), b.GetCreationTimestamp()
		return cmp.Or(cmp.Compare(numberOf(b), numberOf(a)), bt.Compare(at.Time), cmp.Compare(a.GetName(), b.GetName()))
	})
}

// numberOf returns the number of a ControllerRevision. The newest one has the largest number.
func numberOf(revision *unstructured.Unstructured) int64 {
	number, _, _ := unstructured.NestedInt64(revision.Object, "revision")
	return number
}
