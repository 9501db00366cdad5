package manifest

import (
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"kube-queue.dev/kube-queue/pkg/quota/tree"
	"kube-queue.dev/kube-queue/pkg/resources"
)

// Kind, group, version and namespace of the objects that hold a tree.
const (
	Kind      = "ElasticQuotaTree"
	Group     = "scheduling.sigs.k8s.io"
	Version   = Group + "/v1beta1"
	Namespace = "kube-system"
)

// Check checks an ElasticQuotaTree in JSON, as the API server returns it, in the same way as the controller. The tree
// is valid if there are no errors. Each error and each warning names the node by its path and says what to do.
func Check(raw []byte) (errors, warnings []string) {
	object := &unstructured.Unstructured{}
	if err := object.UnmarshalJSON(raw); err != nil {
		return []string{fmt.Sprintf("cannot read the object: %v", err)}, nil
	}
	return check(object, Root(object))
}

// CheckManifest checks an ElasticQuotaTree as a user wrote it. Fields and versions that the API server does not know
// are errors, because kubectl rejects them.
func CheckManifest(object *unstructured.Unstructured) (errors, warnings []string) {
	spec, _ := object.Object["spec"].(map[string]any)
	if spec["root"] != nil {
		errors, warnings = check(object, decoder{strict: true}.node(spec["root"]))
	} else {
		errors, warnings = check(object, Root(object))
	}
	var outside []string
	for _, field := range slices.Sorted(maps.Keys(spec)) {
		switch {
		case field == "root":
		case slices.Contains(fields, field):
			outside = append(outside, fmt.Sprintf("spec: unknown field %q; move it into root, which is a node", field))
		default:
			outside = append(outside, fmt.Sprintf("spec: unknown field %q; spec has only root", field))
		}
	}
	if version := object.GetAPIVersion(); version != Version && object.GroupVersionKind().Group == Group {
		outside = append(outside, fmt.Sprintf("apiVersion is %s; set it to %s", version, Version))
	}
	return append(outside, errors...), warnings
}

func check(object *unstructured.Unstructured, root tree.Node) (errors, warnings []string) {
	if kind := object.GroupVersionKind(); kind.Kind != Kind || kind.Group != Group {
		return []string{fmt.Sprintf("the object is a %s (%s), not an %s (%s); correct kind and apiVersion",
			kind.Kind, kind.GroupVersion(), Kind, Version)}, nil
	}
	_, warnings, err := tree.New(resources.NewNames(), root, tree.Options{})
	if namespace := object.GetNamespace(); namespace != Namespace {
		warnings = slices.Insert(warnings, 0, fmt.Sprintf("the tree is in namespace %q, and only trees in namespace %s are used; set metadata.namespace to %[2]s",
			namespace, Namespace))
	}
	return Faults(err), warnings
}

// Faults returns what is wrong with a tree, from the error of tree.New; nil if nothing is.
func Faults(err error) []string {
	switch invalid, is := err.(*tree.InvalidError); {
	case err == nil:
		return nil
	case is:
		return invalid.Faults
	default:
		return []string{err.Error()}
	}
}
