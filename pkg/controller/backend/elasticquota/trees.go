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

// forest holds all ElasticQuotaTrees, selects the one to use, and builds the quota backend from it.
type forest struct {
	names *resources.Names
	opts  tree.Options
	now   func() time.Time

	// revisions are the ControllerRevisions that existed at the start.
	revisions []*unstructured.Unstructured
	trees     map[string]*unstructured.Unstructured
	// listed is whether all existing trees were processed. No tree is selected until then, because it might not be
	// the oldest.
	listed bool
	// chosen is the tree in use in its latest version.
	chosen *unstructured.Unstructured
	// backend is the backend in force, which was built from inForce; both are nil if no valid tree is known.
	backend *tree.Tree
	inForce *kept
	// ended is whether there was a time without any tree since one was last in force.
	ended bool
	// damaged explains why the ControllerRevisions of the start cannot be used; empty if one can or there were none.
	damaged string
	// problem explains why the latest version of the tree is not in force, and faults lists what is
	// wrong with it. Both are empty if it is in force. since is when the tree became invalid.
	problem, faults string
	since           time.Time
	// warnings are those of the chosen tree.
	warnings []string
	// excesses are the limits of the backend that pods exceed; excessesKnown is whether they have been
	// reported since the start.
	excesses      []quota.Excess
	excessesKnown bool
}

func newForest(names *resources.Names, opts tree.Options, now func() time.Time) *forest {
	return &forest{names: names, opts: opts, now: now, trees: map[string]*unstructured.Unstructured{}}
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

// found processes a ControllerRevision that exists at the start. Later ones are not read, because by then the process
// knows the last valid tree.
func (f *forest) found(revision *unstructured.Unstructured) {
	if !f.listed {
		f.revisions = append(f.revisions, revision)
	}
}

// recall reads the last valid tree from the ControllerRevisions and returns it; nil if there is none. The newest one that
// is not damaged counts.
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

// start selects the tree to use after all existing trees were processed.
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
		// A missing tree is not an invalid tree: deleting it means that no quota should be in force.
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
		f.problem = "" // it was about another tree
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
	if err != nil { // it was read from JSON, so it can be written
		f.refuse(object, []string{err.Error()}, change)
		return
	}
	f.backend, f.inForce, f.ended, f.damaged, f.problem, f.faults = built, inForce, false, "", "", ""
	if len(warnings) > 0 {
		change.Notices = append(change.Notices, f.warn(warnings))
	}
	change.Quota = &backend.Quota{Backend: built}
}

// know processes what is known about the cluster. New warnings become an event.
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

// withUse adds the resources that are used: devices of claims, for example, are counted under a name that no node
// has.
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

// invalidSince returns when the tree became invalid: as shown in its status, or else now.
func (f *forest) invalidSince(object *unstructured.Unstructured) time.Time {
	shown := apimeta.FindStatusCondition(manifest.Status(object).Conditions, wellknown.ConditionValid)
	if shown != nil && shown.Status == metav1.ConditionFalse && !shown.LastTransitionTime.IsZero() {
		return shown.LastTransitionTime.Time
	}
	return f.now()
}

// build builds the backend from the tree in force, with a note if that is not the current one; nil if no valid tree
// is known.
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

// rebuild builds the backend in force again.
func (f *forest) rebuild() backend.Change {
	built := f.build()
	if built == nil {
		return backend.Change{}
	}
	f.backend = built
	return backend.Change{Quota: &backend.Quota{Backend: built}}
}

// wanted returns what to keep for the next start. If no valid tree is known, what is kept now stays, because a person
// might still be able to use it.
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
			"no ElasticQuotaTree exists in namespace %s; ask an administrator to create one that lists the namespace of the job", quotav1beta1.TreeNamespace)}
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

// report records that exactly these limits are exceeded now. Each newly exceeded limit is an event.
func (f *forest) report(excesses []quota.Excess) backend.Change {
	var change backend.Change
	for _, excess := range excesses {
		known := slices.ContainsFunc(f.excesses, func(e quota.Excess) bool { return e.Node == excess.Node && e.Resource == excess.Resource })
		if f.chosen != nil && !known {
			notice := warning(f.chosen, wellknown.EventOverQuota, excess.Message())
			// A limit can be exceeded again while the event about the last time still exists.
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
