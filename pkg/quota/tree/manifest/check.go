package manifest

import (
	"fmt"
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

// Check checks an ElasticQuotaTree in JSON, as the API server has it, in the same way as the controller. The
// tree is valid if there are no errors. Each error and each warning names the node by its path and says what
// to do.
func Check(raw []byte) (errors, warnings []string) {
	object := &unstructured.Unstructured{}
	if err := object.UnmarshalJSON(raw); err != nil {
		return []string{fmt.Sprintf("cannot read the object: %v", err)}, nil
	}
	return check(object, Root(object))
}

// CheckManifest checks an ElasticQuotaTree as a user wrote it. Fields that the API server does not know are
// errors, because kubectl refuses them.
func CheckManifest(object *unstructured.Unstructured) (errors, warnings []string) {
	if spec, ok := object.Object["spec"].(map[string]any); ok && spec["root"] != nil {
		return check(object, decoder{strict: true}.node(spec["root"]))
	}
	return check(object, Root(object))
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

// Faults returns what is wrong with a tree by the error of tree.New; nil if nothing is.
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
