package main

import (
	"fmt"
	"slices"
	"strings"

	"kube-queue.dev/kube-queue/extensions/framework"
)

// ownField is a field that job-extensions may change. In the path, a name that begins with "*" stands for each
// element of a map, or of a list whose elements have the key that follows.
type ownField struct {
	path []string
	// differs returns the expression that permits a difference of the field between now and was, which are optional
	// values; nil permits any difference.
	differs func(now, was string) string
}

// ownFields returns the expression that the specs differ only in the suspend field and in the fields that a hold
// sets. In a release, the annotations of pods may also differ. In a suspended job of a kind that is
// framework.Autoscaled, numbers of pods may be lower.
func ownFields(kind framework.Kind, autoscaled bool) string {
	fields := []ownField{{path: kind.SuspendPath}}
	for _, setting := range kind.Sets {
		fields = append(fields, ownField{path: setting.Path})
	}
	specs := func(more ...ownField) string {
		return onlyDiffer("object.?spec", "oldObject.?spec", ".orValue({})", slices.Concat(fields, more), 1)
	}
	if len(kind.Places) == 0 {
		return specs()
	}
	var released []ownField
	for _, place := range kind.Places {
		released = append(released, placeField(place))
	}
	isSuspended := optional("object", kind.SuspendPath) + ".orValue(false) == true"
	wasSuspended := optional("oldObject", kind.SuspendPath) + ".orValue(false) == true"
	var count ownField
	if kind.Elastic != nil {
		count = countField(*kind.Elastic)
		released = append(released, count)
	}
	own := fmt.Sprintf("(%s)\n|| (%s && !(%s)\n&& %s)", specs(), wasSuspended, isSuspended, specs(released...))
	if kind.Elastic != nil { // a suspension restores the number of pods
		own += fmt.Sprintf("\n|| (%s && %s && !(%s)\n&& %s)", resizing, isSuspended, wasSuspended, specs(count))
	}
	if autoscaled { // an eviction lowers it
		own += fmt.Sprintf("\n|| (%s && %s\n&& %s)", isSuspended, wasSuspended, specs(loweredField(kind.Fence.Groups[0])))
	}
	return own
}

// loweredField returns the first size of groups of pods, which may be lower.
func loweredField(groups framework.Groups) ownField {
	return ownField{slices.Concat(groups.Path, []string{"*" + groups.Key}, groups.Sizes[:1]), func(now, was string) string {
		return fmt.Sprintf("%s.orValue(0) <= %s.orValue(0)", now, was)
	}}
}

// resizing is the expression that the job records a number of pods, now or before.
const resizing = "variables.resized"

// countField returns the number of pods of the elastic pod set, which may differ only if the job records one. It is
// in spec, or in the elements of a map in spec.
func countField(elastic framework.Elastic) ownField {
	path := slices.Clone(elastic.Path)
	if len(path) > 2 {
		path[2] = "*"
	}
	return ownField{path, func(now, was string) string { return fmt.Sprintf("(%s || %s == %s)", resizing, now, was) }}
}

// placeField returns the annotations of pods. Those that the job records may differ.
func placeField(place framework.Place) ownField {
	switch {
	case place.Manager != "":
		return ownField{place.Path, func(now, was string) string { return ownElementDiffers(place, now, was) }}
	case place.PodSet == "":
		return ownField{slices.Concat(place.Path, []string{"*" + place.Key}, place.Below), recordedDiffer}
	default:
		return ownField{place.Path, recordedDiffer}
	}
}

// recordedDiffer returns the expression that annotations differ only in keys that the job records.
func recordedDiffer(now, was string) string {
	return fmt.Sprintf("%[1]s.orValue({}).all(k, k in variables.recorded || (k in %[2]s.orValue({}) && %[1]s.orValue({})[k] == %[2]s.orValue({})[k]))\n"+
		"&& %[2]s.orValue({}).all(k, k in variables.recorded || k in %[1]s.orValue({}))", now, was)
}

// onlyDiffer returns the expression that two maps are equal except in the fields, whose paths begin at the depth. If
// a map can be missing, orEmpty replaces it by an empty one.
func onlyDiffer(now, was, orEmpty string, fields []ownField, depth int) string {
	var names []string
	at := map[string][]ownField{}
	for _, field := range fields {
		if len(field.path) <= depth {
			continue // check rejects it
		}
		name := field.path[depth]
		if at[name] == nil {
			names = append(names, name)
		}
		at[name] = append(at[name], field)
	}
	terms := []string{except(now+orEmpty, was+orEmpty, names)}
	for _, name := range names {
		now, was, next := now+".?"+name, was+".?"+name, depth+1
		switch first := at[name][0]; {
		case len(first.path) > next && strings.HasPrefix(first.path[next], "*"):
			terms = append(terms, elementsDiffer(now, was, first.path[next][1:], at[name], next+1))
		case len(first.path) > next:
			terms = append(terms, onlyDiffer(now, was, ".orValue({})", at[name], next))
		case first.differs != nil:
			terms = append(terms, first.differs(now, was))
		}
	}
	return strings.Join(terms, "\n&& ")
}

// except returns the expression that two maps are equal except in the fields of these names.
func except(now, was string, names []string) string {
	return fmt.Sprintf("%[1]s.all(f, f in %[3]s || (f in %[2]s && %[1]s[f] == %[2]s[f]))\n&& %[2]s.all(f, f in %[3]s || f in %[1]s)",
		now, was, "['"+strings.Join(names, "', '")+"']")
}

// elementsDiffer returns the expression that the elements of a list with a key, or of a map, differ only in the
// fields.
func elementsDiffer(now, was, key string, fields []ownField, depth int) string {
	elements := "(g == w || (type(g) == map && type(w) == map\n&& " + onlyDiffer("g", "w", "", fields, depth) + "))"
	if key == "" {
		return fmt.Sprintf("%[1]s.orValue({}).all(n, n in %[2]s.orValue({}) && [%[1]s.orValue({})[n]].all(g, [%[2]s.orValue({})[n]].all(w,\n%[3]s)))\n"+
			"&& %[2]s.orValue({}).all(n, n in %[1]s.orValue({}))", now, was, elements)
	}
	return fmt.Sprintf("%[1]s.orValue([]).map(g, g.?%[3]s) == %[2]s.orValue([]).map(w, w.?%[3]s)\n"+
		"&& %[1]s.orValue([]).all(g, %[2]s.orValue([]).exists(w, g.?%[3]s == w.?%[3]s && %[4]s))", now, was, key, elements)
}

// ownElementDiffers returns the expression that only the element of the manager differs, and that it contains only
// annotations. The operator may add the time.
func ownElementDiffers(place framework.Place, now, was string) string {
	own, others := fmt.Sprintf("p.?%s.orValue('') == '%s'", place.Key, place.Manager), fmt.Sprintf("p.?%s.orValue('') != '%s'", place.Key, place.Manager)
	return fmt.Sprintf("%[1]s.orValue([]).filter(p, %[4]s) == %[2]s.orValue([]).filter(p, %[4]s)\n"+
		"&& %[1]s.orValue([]).filter(p, %[3]s).all(p, p.all(f, f in ['%[5]s', 'time', '%[6]s'])\n&& %[7]s\n&& %[8]s.orValue([]).all(g, g.all(f, f in ['%[9]s', '%[10]s'])\n&& %[11]s\n"+
		"&& %[12]s.orValue({}).all(k, k in variables.recorded)))",
		now, was, own, others, place.Key, place.Own.Path[0], chain("p", place.Own.Path), optional("p", place.Own.Path),
		place.Own.Key, place.Own.Below[0], chain("g", place.Own.Below), optional("g", place.Own.Below))
}

// chain returns the expression that the maps on the path contain no other fields.
func chain(root string, path []string) string {
	var terms []string
	for depth := 1; depth < len(path); depth++ {
		terms = append(terms, fmt.Sprintf("%s.orValue({}).all(f, f == '%s')", optional(root, path[:depth]), path[depth]))
	}
	return strings.Join(terms, " && ")
}

// optional returns a field of an object whose parents can be missing.
func optional(root string, path []string) string { return root + ".?" + strings.Join(path, ".?") }
