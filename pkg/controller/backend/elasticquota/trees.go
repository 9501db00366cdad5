package elasticquota

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	quotav1beta1 "kube-queue.dev/kube-queue/apis/quota/v1beta1"
	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	"kube-queue.dev/kube-queue/pkg/controller/backend"
	"kube-queue.dev/kube-queue/pkg/quota"
	"kube-queue.dev/kube-queue/pkg/quota/tree"
	"kube-queue.dev/kube-queue/pkg/quota/tree/manifest"
	"kube-queue.dev/kube-queue/pkg/resources"
)

// forest holds all ElasticQuotaTrees, selects the tree to use, and builds the quota backend from it.
type forest struct {
	names *resources.Names
	opts  tree.Options
	now   func() time.Time

	// revisions are the ControllerRevisions that existed at the start.
	revisions []*unstructured.Unstructured
	trees     map[string]*unstructured.Unstructured
	// listed is whether all existing trees are processed. No tree is selected before that, because an older one may
	// follow.
	listed bool
	// chosen is the latest version of the tree in use.
	chosen *unstructured.Unstructured
	// backend is the backend in force, built from inForce; both are nil if no valid tree is known.
	backend *tree.Tree
	inForce *kept
	// ended is whether there has been a time without any tree since the last tree was in force.
	ended bool
	// damaged explains why no ControllerRevision of the start can be used; empty if one can or there were none.
	damaged string
	// problem explains why the latest version of the tree is not in force, and faults lists its faults. Both are empty
	// if it is in force. since is when the tree became invalid.
	problem, faults string
	since           time.Time
	// warnings are the warnings about the chosen tree.
	warnings []string
	// excesses are the limits of the backend that pods exceed. excessesKnown is whether they were reported since the
	// start.
	excesses      []quota.Excess
	excessesKnown bool
}

func newForest(names *resources.Names, opts tree.Options, now func() time.Time) *forest {
	return &forest{names: names, opts: opts, now: now, trees: map[string]*unstructured.Unstructured{}}
}

// set processes a new or changed tree, or a deletion if object is nil.
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

// found processes a ControllerRevision that exists at the start. Later ones are not read: by then, the process knows
// the last valid tree.
func (f *forest) found(revision *unstructured.Unstructured) {
	if !f.listed {
		f.revisions = append(f.revisions, revision)
	}
}

// recall returns the last valid tree, from the newest ControllerRevision that is not damaged; nil if there is none.
func (f *forest) recall() quota.Backend {
	sortRevisions(f.revisions)
	for _, revision := range f.revisions {
		var built *tree.Tree
		last, err := readKept(revision)
		if err == nil {
			built, _, err = tree.New(f.names, last.root, f.opts)
		}
		if err == nil {
			f.inForce, f.damaged = last, ""
			return built
		}
		f.damaged = fmt.Sprintf("ControllerRevision %s/%s, which should hold the last valid tree, cannot be used: %v", revision.GetNamespace(), revision.GetName(), err)
	}
	return nil
}

// start selects the tree to use after all existing trees are processed.
func (f *forest) start() backend.Change {
	f.listed = true
	last := f.recall()
	f.revisions = nil
	var change backend.Change
	oldest := f.oldest()
	for _, key := range slices.Sorted(maps.Keys(f.trees)) {
		if object := f.trees[key]; object != oldest {
			change.Notices = append(change.Notices, ignored(object, oldest))
		}
	}
	f.follow(oldest, &change)
	if change.Quota != nil {
		change.Quota.Last = last
	}
	return change
}

// follow applies the current version of the oldest tree.
func (f *forest) follow(oldest *unstructured.Unstructured, change *backend.Change) {
	switch {
	case oldest == nil:
		// A missing tree is not an invalid tree: a user who deletes it wants no quota in force.
		f.chosen, f.backend, f.inForce, f.ended, f.damaged, f.problem, f.faults, f.warnings = nil, nil, nil, true, "", "", "", nil
		change.Quota = &backend.Quota{Missing: f.missing()}
	case f.chosen != nil && f.chosen.GetUID() == oldest.GetUID() && f.chosen.GetGeneration() == oldest.GetGeneration():
		f.chosen = oldest // only its status or metadata has changed
	default:
		f.choose(oldest, change)
	}
}

// choose builds the backend from the tree. If the tree is invalid, the last valid tree stays in force, even if that
// was a different tree.
func (f *forest) choose(object *unstructured.Unstructured, change *backend.Change) {
	if f.chosen != nil && f.chosen.GetUID() != object.GetUID() {
		f.problem = "" // it is about another tree
	}
	f.chosen = object
	root := manifest.Root(object)
	built, warnings, err := tree.New(f.names, root, f.opts)
	f.warnings = warnings
	if err != nil {
		f.refuse(object, manifest.Faults(err), change)
		return
	}
	inForce, err := keep(object, root)
	if err != nil { // cannot happen, because the tree was read from JSON
		f.refuse(object, []string{err.Error()}, change)
		return
	}
	f.backend, f.inForce, f.ended, f.damaged, f.problem, f.faults = built, inForce, false, "", "", ""
	if len(warnings) > 0 {
		change.Notices = append(change.Notices, f.warn(warnings))
	}
	change.Quota = &backend.Quota{Backend: built}
}

// know processes new facts about the cluster. New warnings become an event.
func (f *forest) know(cluster tree.Cluster) (change backend.Change) {
	if f.chosen == nil || f.problem != "" {
		return change // a tree that is not in force needs no warnings
	}
	before := f.warnings
	f.warnings = tree.Warnings(manifest.Root(f.chosen), f.withUse(cluster))
	var added []string
	for _, text := range f.warnings {
		if !slices.Contains(before, text) {
			added = append(added, text)
		}
	}
	if len(added) > 0 {
		change.Notices = append(change.Notices, f.warn(added))
	}
	return change
}

// withUse adds the resources in use. For example, devices of claims are counted under a name that no node has.
func (f *forest) withUse(cluster tree.Cluster) tree.Cluster {
	of := cluster.HasResource
	if of == nil || f.backend == nil {
		return cluster
	}
	used := f.backend.Usage()[0].Used // the root comes first
	cluster.HasResource = func(name string) bool {
		return of(name) || slices.ContainsFunc(used, func(a resources.Amount) bool { return f.names.Name(a.ID) == name })
	}
	return cluster
}

// warn returns the event with the warnings about the chosen tree.
func (f *forest) warn(warnings []string) backend.Notice {
	notice := warning(f.chosen, wellknown.EventQuotaTreeWarning, "The tree is in force, with warnings: "+strings.Join(warnings, "; "))
	notice.Key = notice.Message // changes of the cluster can add warnings without a change of the tree
	return notice
}

// refuse handles an invalid tree.
func (f *forest) refuse(object *unstructured.Unstructured, faults []string, change *backend.Change) {
	if f.problem == "" {
		f.since = f.invalidSince(object)
	}
	f.faults = strings.Join(faults, "; ")
	switch {
	case f.inForce != nil:
		f.problem = fmt.Sprintf("The tree is invalid, and the last valid tree stays in force (%s): %s", f.inForce, f.faults)
		if built := f.build(); built != nil {
			f.backend = built
			change.Quota = &backend.Quota{Backend: built}
		}
	case f.damaged != "":
		f.problem = fmt.Sprintf("The tree is invalid and no earlier valid tree is known, so no job is released: %s. %s", f.faults, f.damaged)
		change.Quota = &backend.Quota{Missing: f.missing()}
	default:
		f.problem = "The tree is invalid and no earlier valid tree is known, so no job is released: " + f.faults
		change.Quota = &backend.Quota{Missing: f.missing()}
	}
	notice := warning(object, wellknown.EventInvalidQuotaTree, f.problem)
	notice.IsError = true
	change.Notices = append(change.Notices, notice)
}

// invalidSince returns when the tree became invalid: the time in its status, or else now.
func (f *forest) invalidSince(object *unstructured.Unstructured) time.Time {
	shown := apimeta.FindStatusCondition(manifest.Status(object).Conditions, wellknown.ConditionValid)
	if shown != nil && shown.Status == metav1.ConditionFalse && !shown.LastTransitionTime.IsZero() {
		return shown.LastTransitionTime.Time
	}
	return f.now()
}

// build builds the backend from the tree in force; nil if no valid tree is known. It adds a note if that tree is not
// the current one.
func (f *forest) build() *tree.Tree {
	if f.inForce == nil {
		return nil
	}
	opts := f.opts
	if f.problem != "" {
		opts.Note = quota.LastValidNote + fmt.Sprintf("ElasticQuotaTree %s/%s is invalid since %s: %s",
			f.chosen.GetNamespace(), f.chosen.GetName(), f.since.UTC().Format(time.RFC3339), f.faults)
	}
	built, _, err := tree.New(f.names, f.inForce.root, opts)
	if err != nil { // it was valid before
		return nil
	}
	return built
}

// rebuild rebuilds the backend in force.
func (f *forest) rebuild() backend.Change {
	built := f.build()
	if built == nil {
		return backend.Change{}
	}
	f.backend = built
	return backend.Change{Quota: &backend.Quota{Backend: built}}
}

// wanted returns what to keep for the next start. If no valid tree is known, the keeper changes nothing, because a
// person might still be able to use what it holds.
func (f *forest) wanted() wanted {
	return wanted{tree: f.inForce, none: f.ended}
}

// notKept reports that the tree in force cannot be kept.
func (f *forest) notKept(err error) backend.Change {
	if f.chosen == nil {
		return backend.Change{}
	}
	notice := warning(f.chosen, wellknown.EventQuotaTreeNotKept,
		fmt.Sprintf("The tree in force cannot be kept for a restart of kube-queue-controller, which tries again: %v", err))
	notice.IsError = true
	return backend.Change{Notices: []backend.Notice{notice}}
}

// missing explains why no quota is in force.
func (f *forest) missing() *quota.Refusal {
	if f.chosen == nil {
		return &quota.Refusal{Reason: wellknown.ReasonNoQuota, Detail: "no tree", Sentence: fmt.Sprintf(
			"no ElasticQuotaTree exists in namespace %s; ask an administrator to create one that lists the namespace", quotav1beta1.TreeNamespace)}
	}
	name := f.chosen.GetNamespace() + "/" + f.chosen.GetName()
	return &quota.Refusal{Reason: wellknown.ReasonInvalidQuotaTree, Node: name, Detail: f.faults, Sentence: fmt.Sprintf(
		"ElasticQuotaTree %s is invalid since %s and no earlier valid tree is known, so no job is released: %s",
		name, f.since.UTC().Format(time.RFC3339), f.faults)}
}

// oldest returns the tree in use; nil if there is none.
func (f *forest) oldest() *unstructured.Unstructured {
	return manifest.Oldest(slices.Collect(maps.Values(f.trees)))
}

// report records that exactly these limits are exceeded now. Each newly exceeded limit gets an event.
func (f *forest) report(excesses []quota.Excess) backend.Change {
	var change backend.Change
	for _, excess := range excesses {
		known := slices.ContainsFunc(f.excesses, func(e quota.Excess) bool { return e.Node == excess.Node && e.Resource == excess.Resource })
		if f.chosen != nil && !known {
			notice := warning(f.chosen, wellknown.EventOverQuota, excess.Message())
			// A limit can be exceeded again while the earlier event still exists.
			notice.Key = fmt.Sprintf("%s/%s/%d", excess.Node, excess.Resource, f.now().Unix())
			change.Notices = append(change.Notices, notice)
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
