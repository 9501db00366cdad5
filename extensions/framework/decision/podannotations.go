package decision

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	"kube-queue.dev/kube-queue/extensions/framework"
)

// PodAnnotations are annotations of the pods of a job, by pod set and key.
type PodAnnotations map[string]map[string]string

// Unplaced are pod sets that do not get their annotations, and why.
type Unplaced map[string]string

// Why returns an explanation for all pod sets of the annotations.
func (a PodAnnotations) Why(cause string) Unplaced {
	unplaced := Unplaced{}
	for podSet := range a {
		unplaced[podSet] = cause
	}
	return unplaced
}

// And returns the explanations of both. If both explain the same pod set, u takes precedence.
func (u Unplaced) And(more Unplaced) Unplaced {
	all := Unplaced{}
	maps.Copy(all, more)
	maps.Copy(all, u)
	return all
}

// PodAnnotationsOf returns the annotations that the admission checks of a unit add to the pods of its job. If two
// checks set the same key, the later one in the status wins. A key that is not a valid annotation name is left out:
// the API server would reject the job or its pods.
func PodAnnotationsOf(unit *v1alpha1.QueueUnit) (PodAnnotations, Unplaced) {
	added, unplaced := PodAnnotations{}, Unplaced{}
	for _, check := range unit.Status.AdmissionChecks {
		if check.State != v1alpha1.CheckReady {
			continue
		}
		for _, update := range check.PodSetUpdates {
			for _, key := range slices.Sorted(maps.Keys(update.Annotations)) {
				if faults := validation.IsQualifiedName(strings.ToLower(key)); len(faults) > 0 {
					unplaced[update.Name] = fmt.Sprintf("%q of admission check %s is not the name of an annotation: %s", key, check.Name, faults[0])
					continue
				}
				added.set(update.Name, key, update.Annotations[key])
			}
		}
	}
	return added, unplaced
}

func (a PodAnnotations) set(podSet, key, value string) {
	if a[podSet] == nil {
		a[podSet] = map[string]string{}
	}
	a[podSet][key] = value
}

// Record returns the value of wellknown.PodAnnotationsAnnotation: for each key, the annotated pod sets, as
// KEY=SET:SET,KEY=SET.
func (a PodAnnotations) Record() string {
	sets := map[string][]string{}
	for _, podSet := range slices.Sorted(maps.Keys(a)) {
		for key := range a[podSet] {
			sets[key] = append(sets[key], podSet)
		}
	}
	var entries []string
	for _, key := range slices.Sorted(maps.Keys(sets)) {
		entries = append(entries, key+"="+strings.Join(sets[key], ":"))
	}
	return strings.Join(entries, ",")
}

// RecordedOf returns the annotations that the last release added, without their values.
func RecordedOf(job framework.Object) PodAnnotations {
	recorded := PodAnnotations{}
	for entry := range strings.SplitSeq(job.GetAnnotations()[wellknown.PodAnnotationsAnnotation], ",") {
		key, sets, _ := strings.Cut(entry, "=")
		if sets == "" {
			continue
		}
		for podSet := range strings.SplitSeq(sets, ":") {
			recorded.set(podSet, key, "")
		}
	}
	return recorded
}

// Annotate changes the annotations of the pods in a job, a JSON object: it sets the added annotations, and sets
// others that the last release added to null. It returns what was added, and why pod sets did not get theirs. Other
// annotations stay. An annotation that the job already has gets the new value.
func Annotate(kind framework.Kind, job map[string]any, added, recorded PodAnnotations) (PodAnnotations, Unplaced) {
	places := placesOf(kind, job)
	done, unplaced := PodAnnotations{}, Unplaced{}
	for _, podSet := range slices.Sorted(maps.Keys(recorded)) {
		if at, found := places.of(podSet); found && at.Manager == "" {
			for key := range recorded[podSet] {
				places.annotate(podSet, key, nil)
			}
		}
	}
	places.clear()
	for _, podSet := range slices.Sorted(maps.Keys(added)) {
		if why := places.refuses(podSet); why != "" {
			unplaced[podSet] = why
			continue
		}
		for key, value := range added[podSet] {
			places.annotate(podSet, key, value)
			done.set(podSet, key, value)
		}
	}
	return done, unplaced
}

// SetTime sets the time when the Manager's element was set, if the job has such an element.
func SetTime(kind framework.Kind, job map[string]any, now time.Time) {
	place, found := placesOf(kind, job).managed()
	if !found || place.Time == "" {
		return
	}
	all, _ := field(job, place.Path...).([]any)
	for _, one := range all {
		if element, _ := one.(map[string]any); element[place.Key] == place.Manager {
			element[place.Time] = now.UTC().Format(time.RFC3339)
		}
	}
}

// places are where a job has the annotations of its pods.
type places struct {
	kind framework.Kind
	job  map[string]any
	// at has the place of each pod set. The place of a Manager is for all pod sets that have no other.
	at map[string]located
}

// located is the place of one pod set in a job.
type located struct {
	framework.Place
	// around is the object in the job that has the annotations at path.
	around map[string]any
	path   []string
}

func placesOf(kind framework.Kind, job map[string]any) places {
	p := places{kind: kind, job: job, at: map[string]located{}}
	for _, place := range kind.Places {
		switch {
		case place.Manager != "":
		case place.PodSet != "":
			p.add(place.PodSet, place, job, place.Path)
		default:
			p.addAll(place)
		}
	}
	return p
}

// add adds the place of a pod set whose annotations are at a path in an object, if the parent of the pods' metadata
// exists.
func (p places) add(podSet string, place framework.Place, in any, path []string) {
	last := len(path) - 2 // the metadata and its annotations
	if around, found := field(in, path[:last]...).(map[string]any); found {
		p.at[podSet] = located{place, around, path[last:]}
	}
}

// addAll adds the elements of a map or a list.
func (p places) addAll(place framework.Place) {
	elements := map[string]map[string]any{}
	var names []string
	switch all := field(p.job, place.Path...).(type) {
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(all)) {
			if element, isMap := all[name].(map[string]any); isMap && place.Key == "" {
				elements[name], names = element, append(names, name)
			}
		}
	case []any:
		for _, one := range all {
			element, _ := one.(map[string]any)
			if name, _ := element[place.Key].(string); name != "" && place.Key != "" {
				elements[name], names = element, append(names, name)
			}
		}
	}
	podSets := names
	if place.Names != nil {
		podSets = place.Names(names)
	}
	for i, podSet := range podSets {
		p.add(podSet, place, elements[names[i]], place.Below)
	}
}

func (p places) of(podSet string) (framework.Place, bool) {
	if at, found := p.at[podSet]; found {
		return at.Place, true
	}
	return p.managed()
}

// managed returns the place with a Manager.
func (p places) managed() (framework.Place, bool) {
	i := slices.IndexFunc(p.kind.Places, func(place framework.Place) bool { return place.Manager != "" })
	if i < 0 {
		return framework.Place{}, false
	}
	return p.kind.Places[i], true
}

// refuses returns why the pods of a pod set cannot be annotated; empty if they can.
func (p places) refuses(podSet string) string {
	place, found := p.of(podSet)
	switch {
	case len(p.kind.Places) == 0:
		return p.kind.NoPlaces
	case !found:
		return fmt.Sprintf("the %s contains no template of these pods", p.kind.Kind)
	case place.Unless != nil && field(p.job, place.Unless...) != nil:
		return place.Why
	}
	return ""
}

// annotate sets an annotation of a pod set that has a place; nil removes it.
func (p places) annotate(podSet, key string, value any) {
	at, found := p.at[podSet]
	if !found {
		place, _ := p.managed()
		at = located{place, p.override(place, podSet), place.Own.Below}
	}
	annotations := at.around
	for _, name := range at.path {
		annotations = child(annotations, name)
	}
	annotations[key] = value
}

// clear removes the Manager's element, which contains only annotations of the last release.
func (p places) clear() {
	place, found := p.managed()
	if !found {
		return
	}
	parent, name := field(p.job, place.Path[:len(place.Path)-1]...), place.Path[len(place.Path)-1]
	object, _ := parent.(map[string]any)
	list, _ := object[name].([]any)
	kept := slices.DeleteFunc(slices.Clone(list), func(one any) bool {
		element, _ := one.(map[string]any)
		return element[place.Key] == place.Manager
	})
	switch {
	case len(kept) == len(list):
	case len(kept) == 0:
		delete(object, name)
	default:
		object[name] = kept
	}
}

// override returns a pod set's element in the Manager's element. It creates both if necessary.
func (p places) override(place framework.Place, podSet string) map[string]any {
	element := elementOf(p.job, place.Path, place.Key, place.Manager)
	return elementOf(element, place.Own.Path, place.Own.Key, podSet)
}

// elementOf returns the list element with the name, and appends one if there is none.
func elementOf(object map[string]any, path []string, key, name string) map[string]any {
	last := len(path) - 1
	for _, step := range path[:last] {
		object = child(object, step)
	}
	list, _ := object[path[last]].([]any)
	for _, one := range list {
		if element, _ := one.(map[string]any); element[key] == name {
			return element
		}
	}
	element := map[string]any{key: name}
	object[path[last]] = append(slices.Clip(list), element)
	return element
}

// child returns a field that is an object, and creates it if necessary.
func child(object map[string]any, name string) map[string]any {
	found, _ := object[name].(map[string]any)
	if found == nil {
		found = map[string]any{}
		object[name] = found
	}
	return found
}

// field returns a field of a JSON object; nil if it does not exist.
func field(object any, path ...string) any {
	for _, name := range path {
		inner, _ := object.(map[string]any)
		object = inner[name]
	}
	return object
}
