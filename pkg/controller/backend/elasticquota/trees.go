package elasticquota

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	quotav1beta1 "kube-queue.dev/kube-queue/apis/quota/v1beta1"
	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	"kube-queue.dev/kube-queue/pkg/controller/backend"
	"kube-queue.dev/kube-queue/pkg/quota"
	"kube-queue.dev/kube-queue/pkg/quota/tree"
	"kube-queue.dev/kube-queue/pkg/quota/tree/manifest"
	"kube-queue.dev/kube-queue/pkg/resources"
)

// forest holds all ElasticQuotaTrees, selects the one to use, and builds the quota backend from it.
type forest struct {
	names *resources.Names
	opts  tree.Options

	trees map[string]*unstructured.Unstructured
	// listed is whether all existing trees were processed. No tree is selected before, because it
	// might not be the oldest.
	listed bool
	// chosen is the tree in use in its latest version.
	chosen *unstructured.Unstructured
	// backend is the backend in force, which was built from root; nil if no version of the tree was valid
	// yet.
	backend *tree.Tree
	root    tree.Node
	// problem explains why the latest version of the tree is not in force, and faults lists what is
	// wrong with it. Both are empty if it is in force.
	problem, faults string
	warnings        []string
	// excesses are the limits of the backend that pods exceed; excessesKnown is whether they have been
	// reported since the start.
	excesses      []quota.Excess
	excessesKnown bool
}

func newForest(names *resources.Names, opts tree.Options) *forest {
	return &forest{names: names, opts: opts, trees: map[string]*unstructured.Unstructured{}}
}

// set processes a tree that was added or changed, or deleted if it is nil.
func (f *forest) set(key string, object *unstructured.Unstructured) backend.Change {
	before, isNew := f.trees[key], f.trees[key] == nil
	if object == nil {
		delete(f.trees, key)
	} else {
		f.trees[key] = object
	}
	var change backend.Change
	if !f.listed {
		return change
	}
	oldest := f.oldest()
	if object != nil && object != oldest && (isNew || before.GetGeneration() != object.GetGeneration()) {
		change.Notices = append(change.Notices, ignored(object, oldest))
	}
	f.follow(oldest, &change)
	return change
}

// start selects the tree to use after all existing trees were processed.
func (f *forest) start() backend.Change {
	f.listed = true
	var change backend.Change
	oldest := f.oldest()
	for _, key := range slices.Sorted(maps.Keys(f.trees)) {
		if object := f.trees[key]; object != oldest {
			change.Notices = append(change.Notices, ignored(object, oldest))
		}
	}
	f.follow(oldest, &change)
	return change
}

// follow applies the current version of the oldest tree.
func (f *forest) follow(oldest *unstructured.Unstructured, change *backend.Change) {
	switch {
	case oldest == nil:
		f.chosen, f.backend, f.problem, f.faults, f.warnings = nil, nil, "", "", nil
		change.Quota = &backend.Quota{Missing: f.missing()}
	case f.chosen != nil && f.chosen.GetUID() == oldest.GetUID() && f.chosen.GetGeneration() == oldest.GetGeneration():
		f.chosen = oldest // only its status or metadata have changed
	default:
		f.choose(oldest, change)
	}
}

// choose builds the backend from the tree. If the tree is invalid, the backend of its last valid
// version stays in force. The backend of another tree does not.
func (f *forest) choose(object *unstructured.Unstructured, change *backend.Change) {
	if f.chosen != nil && f.chosen.GetUID() != object.GetUID() {
		f.backend = nil
	}
	f.chosen = object
	root := manifest.Root(object)
	built, warnings, err := tree.New(f.names, root, f.opts)
	f.warnings = warnings
	if err != nil {
		f.faults = faultsOf(err)
		f.problem = "The tree is invalid and no earlier valid version is known, so no job is released: " + f.faults
		if f.backend != nil {
			f.problem = "The tree is invalid, and its last valid version stays in force: " + f.faults
		}
		change.Notices = append(change.Notices, warning(object, wellknown.EventInvalidQuotaTree, f.problem))
		if f.backend == nil {
			change.Quota = &backend.Quota{Missing: f.missing()}
		}
		return
	}
	f.backend, f.root, f.problem, f.faults = built, root, "", ""
	if len(warnings) > 0 {
		change.Notices = append(change.Notices, warning(object, wellknown.EventQuotaTreeWarning,
			"The tree is in force, with warnings: "+strings.Join(warnings, "; ")))
	}
	change.Quota = &backend.Quota{Backend: built}
}

// rebuild builds the backend in force again.
func (f *forest) rebuild() backend.Change {
	if f.backend == nil {
		return backend.Change{}
	}
	built, _, err := tree.New(f.names, f.root, f.opts)
	if err != nil { // it was valid before
		return backend.Change{}
	}
	f.backend = built
	return backend.Change{Quota: &backend.Quota{Backend: built}}
}

// faultsOf returns what is wrong with a tree.
func faultsOf(err error) string {
	var invalid *tree.InvalidError
	if errors.As(err, &invalid) {
		return strings.Join(invalid.Faults, "; ")
	}
	return err.Error()
}

// missing explains why no quota is in force.
func (f *forest) missing() *quota.Refusal {
	if f.chosen == nil {
		return &quota.Refusal{Reason: wellknown.ReasonNoQuota, Sentence: fmt.Sprintf(
			"no ElasticQuotaTree exists in namespace %s; ask an administrator to create one that lists the namespace of the job", quotav1beta1.TreeNamespace)}
	}
	return &quota.Refusal{Reason: wellknown.ReasonInvalidQuotaTree, Sentence: fmt.Sprintf(
		"ElasticQuotaTree %s/%s is invalid and no earlier valid version is known, so no job is released: %s", f.chosen.GetNamespace(), f.chosen.GetName(), f.faults)}
}

// oldest returns the oldest tree in namespace kube-system, which is the one in use; nil if there is
// none.
func (f *forest) oldest() *unstructured.Unstructured {
	var oldest *unstructured.Unstructured
	for _, t := range f.trees {
		if t.GetNamespace() != quotav1beta1.TreeNamespace {
			continue
		}
		if oldest == nil || older(t, oldest) {
			oldest = t
		}
	}
	return oldest
}

func older(a, b *unstructured.Unstructured) bool {
	at, bt := a.GetCreationTimestamp(), b.GetCreationTimestamp()
	if !at.Equal(&bt) {
		return at.Before(&bt)
	}
	return a.GetName() < b.GetName()
}

// report processes that these limits are exceeded now. Each newly exceeded limit is an event.
func (f *forest) report(excesses []quota.Excess) backend.Change {
	var change backend.Change
	for _, excess := range excesses {
		known := slices.ContainsFunc(f.excesses, func(e quota.Excess) bool { return e.Node == excess.Node && e.Resource == excess.Resource })
		if f.chosen != nil && !known {
			change.Notices = append(change.Notices, warning(f.chosen, wellknown.EventOverQuota, excess.Message()))
		}
	}
	f.excesses, f.excessesKnown = excesses, true
	return change
}

func ignored(object, oldest *unstructured.Unstructured) backend.Notice {
	message := fmt.Sprintf("This tree is ignored because only trees in namespace %s are used. Delete it, or create it there.", quotav1beta1.TreeNamespace)
	if object.GetNamespace() == quotav1beta1.TreeNamespace {
		message = fmt.Sprintf("This tree is ignored because only the oldest tree, %s, is used. Delete this tree; or, to use it, delete %[1]s.", oldest.GetName())
	}
	return warning(object, wellknown.EventIgnoredQuotaTree, message)
}

func warning(object *unstructured.Unstructured, reason wellknown.EventReason, message string) backend.Notice {
	return backend.Notice{About: object, Type: corev1.EventTypeWarning, Reason: reason, Message: message}
}
