package main

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"kube-queue.dev/kube-queue/extensions/framework"
)

// chartFence is what the fence of managed namespaces needs to know of a kind: expressions
// over object and oldObject that fail on no object.
type chartFence struct {
	// Readable: the operator can read the object. WasReadable is the same of oldObject.
	Readable    string `json:"readable"`
	WasReadable string `json:"wasReadable"`
	// Suspended and WasSuspended hold only for readable objects.
	Suspended    string `json:"suspended"`
	WasSuspended string `json:"wasSuspended"`
	// Ended: oldObject has ended.
	Ended string `json:"ended"`
	// Scale is the field that the subresource scale sets; empty for none.
	Scale string `json:"scale,omitempty"`
	// ScaledSuspended: params, the scaled object, is not running. ScaledElastic: it may have
	// the size of object, a Scale; empty if it never may.
	ScaledSuspended string `json:"scaledSuspended,omitempty"`
	ScaledElastic   string `json:"scaledElastic,omitempty"`
	// declared: no field decides the size, so there are no rules.
	declared bool
	// Rules hold for two readable objects that are not suspended.
	Rules []fenceRule `json:"rules"`
	// Own is that the spec differs only in the fields that job-extensions sets.
	Own string `json:"own"`
}

type fenceRule struct {
	Expression string `json:"expression"`
	// Fields are the fields that the rule is about, for the message.
	Fields string `json:"fields"`
}

func fenceOf(kind framework.Kind, autoscaled bool) (chartFence, error) {
	fence := kind.Fence
	maps := [][]string{parent(kind.SuspendPath)}
	for _, path := range fence.Frozen {
		maps = append(maps, parent(path))
	}
	for _, groups := range fence.Groups {
		maps = append(maps, parent(groups.Path))
	}
	ended, err := endedOf(fence.Ended)
	if err != nil {
		return chartFence{}, err
	}
	found := chartFence{
		Readable: readable("object", maps), WasReadable: readable("oldObject", maps),
		Suspended: suspended("object", kind.SuspendPath), WasSuspended: suspended("oldObject", kind.SuspendPath),
		Ended: ended, Scale: dotted(fence.Scale), declared: fence.Declared, Own: ownFields(kind, autoscaled),
	}
	if len(fence.Frozen) > 0 {
		found.Rules = append(found.Rules, frozen(fence.Frozen))
	}
	if fence.Size != "" {
		found.Rules = append(found.Rules, fenceRule{
			Expression: on("object", fence.Size) + " <= " + on("oldObject", fence.Size),
			Fields:     "the number of pods",
		})
	}
	for _, groups := range fence.Groups {
		found.Rules = append(found.Rules, groupRule(groups))
	}
	if fence.Scale != nil {
		found.ScaledSuspended = fmt.Sprintf("!(%s) || %s", readable("params", maps), suspended("params", kind.SuspendPath))
		if groups := fence.Groups[0]; groups.Elastic != "" {
			found.ScaledElastic = fmt.Sprintf("%s && object.spec.replicas <= %s", on("params", groups.Elastic), on("params", groups.Most))
		}
	}
	return found, nil
}

// readable returns that the parents of all fields are maps. The spec must exist.
func readable(root string, maps [][]string) string {
	terms := []string{fmt.Sprintf("type(%s.?spec.orValue('')) == map", root)}
	var seen []string
	for _, path := range maps {
		for depth := 2; depth <= len(path); depth++ {
			if at := field(root, path[:depth]); !slices.Contains(seen, at) {
				seen = append(seen, at)
				terms = append(terms, fmt.Sprintf("type(%s.orValue({})) == map", at))
			}
		}
	}
	return strings.Join(terms, " && ")
}

func suspended(root string, path []string) string {
	return field(root, path) + ".orValue(false) == true"
}

// field returns an optional field of the spec or status, such as object.spec.?runPolicy.?suspend.
func field(root string, path []string) string {
	return root + "." + strings.Join(path, ".?")
}

func frozen(paths [][]string) fenceRule {
	var same, names []string
	for _, path := range paths {
		same = append(same, field("object", path)+" == "+field("oldObject", path))
		names = append(names, dotted(path))
	}
	return fenceRule{Expression: strings.Join(same, "\n&& "), Fields: strings.Join(names, ", ")}
}

// groupRule returns that no group is added, that no group grows and that no other field of a
// group changes.
func groupRule(groups framework.Groups) fenceRule {
	now, was := field("object", groups.Path), field("oldObject", groups.Path)
	sizes := "['" + strings.Join(groups.Sizes, "', '") + "']"
	fits := of("group", groups.Size) + " <= " + of("was", groups.Size)
	if groups.Elastic != "" {
		fits = fmt.Sprintf("(%s\n      || (%s && %s <= %s))", fits,
			on("oldObject", groups.Elastic), of("group", groups.Size), of("was", on("oldObject", groups.Most)))
	}
	same := fmt.Sprintf(`group.all(f, f in %[1]s || (f in was && group[f] == was[f]))
    && was.all(f, f in %[1]s || f in group)
    && %[2]s`, sizes, fits)
	var expression string
	if groups.Key == "" {
		expression = fmt.Sprintf(`%[1]s == %[2]s
|| (type(%[1]s.orValue({})) == map && type(%[2]s.orValue({})) == map
  && %[1]s.orValue({}).all(name, name in %[2]s.orValue({}) && [%[1]s.orValue({})[name]].all(group, [%[2]s.orValue({})[name]].all(was,
    group == was || (type(group) == map && type(was) == map
    && %[3]s)))))`, now, was, same)
	} else {
		expression = fmt.Sprintf(`%[1]s == %[2]s
|| (type(%[1]s.orValue([])) == list && type(%[2]s.orValue([])) == list && %[1]s.orValue([]).size() <= %[2]s.orValue([]).size()
  && %[1]s.orValue([]).all(group, type(group) == map && %[2]s.orValue([]).exists(was, type(was) == map
    && group.?%[3]s == was.?%[3]s
    && %[4]s)))`, now, was, groups.Key, same)
	}
	return fenceRule{Expression: expression, Fields: dotted(groups.Path)}
}

var (
	jobWord   = regexp.MustCompile(`\bjob\b`)
	groupWord = regexp.MustCompile(`\bgroup\b`)
)

// on returns an expression over job as one over the root.
func on(root, expression string) string { return jobWord.ReplaceAllString(expression, root) }

// of returns an expression over group as one over the variable.
func of(variable, expression string) string {
	return groupWord.ReplaceAllString(expression, variable)
}

func endedOf(ended framework.Ended) (string, error) {
	status := "type(oldObject.?status.orValue('')) == map"
	switch {
	case len(ended.Conditions) > 0:
		return fmt.Sprintf(`%s && type(oldObject.status.?conditions.orValue([])) == list
&& oldObject.status.?conditions.orValue([]).exists(c, type(c) == map && c.?type.orValue('') in ['%s'] && c.?status.orValue('') == 'True')`,
			status, strings.Join(ended.Conditions, "', '")), nil
	case len(ended.Path) > 0 && len(ended.Path) <= 3:
		terms := []string{status}
		if len(ended.Path) == 3 {
			terms = append(terms, fmt.Sprintf("type(%s.orValue('')) == map", field("oldObject", ended.Path[:2])))
		}
		return strings.Join(append(terms, fmt.Sprintf("%s.orValue('') in ['%s']", field("oldObject", ended.Path), strings.Join(ended.Values, "', '"))), " && "), nil
	case len(ended.Path) > 0:
		return "", fmt.Errorf("the end at %s is too deep", dotted(ended.Path))
	default:
		return "false", nil
	}
}

// ownField is a field that job-extensions may change.
type ownField struct {
	path []string
	// check returns how the field, now and before, may differ; nil for in any way. Both are
	// optional.
	check func(now, was string) string
}

// ownFields returns that the specs differ only in the suspend field and in the fields that a
// hold sets. In a release, the annotations of pods may differ too. In a suspended job of a kind that is
// framework.Autoscaled, numbers of pods may be lower.
func ownFields(kind framework.Kind, autoscaled bool) string {
	fields := []ownField{{path: kind.SuspendPath}}
	for _, setting := range kind.Sets {
		fields = append(fields, ownField{path: setting.Path})
	}
	always := onlyDiffer("object.?spec", "oldObject.?spec", fields, 1)
	if len(kind.Places) == 0 {
		return always
	}
	released := slices.Clone(fields)
	for _, place := range kind.Places {
		released = append(released, placeField(place, kind.Elastic))
	}
	isSuspended := optional("object", kind.SuspendPath) + ".orValue(false) == true"
	wasSuspended := optional("oldObject", kind.SuspendPath) + ".orValue(false) == true"
	if kind.Elastic != nil && len(kind.Elastic.Path) == 2 {
		released = append(released, ownField{path: kind.Elastic.Path, check: resizedDiffer})
	}
	own := fmt.Sprintf("(%s)\n|| (%s && !(%s)\n&& %s)", always, wasSuspended, isSuspended,
		onlyDiffer("object.?spec", "oldObject.?spec", released, 1))
	if kind.Elastic != nil { // a suspension restores the number of pods
		own += fmt.Sprintf("\n|| (%s && %s && !(%s)\n&& %s)", resizing, isSuspended, wasSuspended,
			onlyDiffer("object.?spec", "oldObject.?spec", append(slices.Clip(fields), countField(*kind.Elastic)), 1))
	}
	if autoscaled { // an eviction lowers it
		own += fmt.Sprintf("\n|| (%s && %s\n&& %s)", isSuspended, wasSuspended,
			onlyDiffer("object.?spec", "oldObject.?spec", append(slices.Clip(fields), loweredField(kind.Fence.Groups[0])), 1))
	}
	return own
}

// loweredField returns the groups of pods, whose first size may be lower.
func loweredField(groups framework.Groups) ownField {
	size := ownField{path: groups.Sizes[:1], check: func(now, was string) string {
		return fmt.Sprintf("%s.orValue(0) <= %s.orValue(0)", now, was)
	}}
	return ownField{path: groups.Path, check: func(now, was string) string {
		if groups.Key == "" {
			return mapDiffers(now, was, size)
		}
		return listDiffers(groups.Key, now, was, size)
	}}
}

// resizing is that the job records a number of pods, now or before.
const resizing = "variables.resized"

// resizedDiffer returns that a number differs only if the job records one.
func resizedDiffer(now, was string) string {
	return fmt.Sprintf("(%s || %s == %s)", resizing, now, was)
}

// countField returns the field with the number of pods of the elastic pod set: it is in spec, or in the elements of a
// map in spec.
func countField(elastic framework.Elastic) ownField {
	if len(elastic.Path) == 2 {
		return ownField{path: elastic.Path, check: resizedDiffer}
	}
	return ownField{path: elastic.Path[:2], check: func(now, was string) string {
		return mapDiffers(now, was, ownField{path: elastic.Path[3:], check: resizedDiffer})
	}}
}

// optional returns a field of an object that may lack its parents.
func optional(root string, path []string) string { return root + ".?" + strings.Join(path, ".?") }

// onlyDiffer returns that two maps are equal except in the fields, whose paths begin at the depth.
func onlyDiffer(now, was string, fields []ownField, depth int) string {
	return strings.Join(append([]string{except(now+".orValue({})", was+".orValue({})", namesAt(fields, depth))}, deeper(now, was, fields, depth)...), "\n&& ")
}

// except returns that two maps are equal except in the fields of these names.
func except(now, was string, names []string) string {
	return fmt.Sprintf("%[1]s.all(f, f in %[3]s || (f in %[2]s && %[1]s[f] == %[2]s[f]))\n&& %[2]s.all(f, f in %[3]s || f in %[1]s)",
		now, was, "['"+strings.Join(names, "', '")+"']")
}

// namesAt returns the names in the paths of the fields at the depth.
func namesAt(fields []ownField, depth int) []string {
	var names []string
	for _, field := range fields {
		if len(field.path) > depth && !slices.Contains(names, field.path[depth]) { // check rejects shorter ones
			names = append(names, field.path[depth])
		}
	}
	return names
}

// deeper returns how the fields at the depth may differ.
func deeper(now, was string, fields []ownField, depth int) []string {
	var terms []string
	for _, name := range namesAt(fields, depth) {
		var below []ownField
		for _, field := range fields {
			switch {
			case len(field.path) <= depth || field.path[depth] != name:
			case len(field.path) > depth+1:
				below = append(below, field)
			case field.check != nil:
				terms = append(terms, field.check(now+".?"+name, was+".?"+name))
			}
		}
		if len(below) > 0 {
			terms = append(terms, onlyDiffer(now+".?"+name, was+".?"+name, below, depth+1))
		}
	}
	return terms
}

// placeField returns the field with the annotations of pods, of which those that the job records
// may differ.
func placeField(place framework.Place, elastic *framework.Elastic) ownField {
	field := ownField{path: place.Path, check: recordedDiffer}
	switch {
	case place.Manager != "":
		field.check = func(now, was string) string { return ownElementDiffers(place, now, was) }
	case place.PodSet == "" && place.Key == "":
		fields := []ownField{{path: place.Below, check: recordedDiffer}}
		if elastic != nil && len(elastic.Path) == 4 && slices.Equal(elastic.Path[:2], place.Path) {
			fields = append(fields, ownField{path: elastic.Path[3:], check: resizedDiffer})
		}
		field.check = func(now, was string) string { return mapDiffers(now, was, fields...) }
	case place.PodSet == "":
		field.check = func(now, was string) string {
			return listDiffers(place.Key, now, was, ownField{path: place.Below, check: recordedDiffer})
		}
	}
	return field
}

// recordedDiffer returns that annotations differ only in keys that the job records.
func recordedDiffer(now, was string) string {
	return fmt.Sprintf("%[1]s.orValue({}).all(k, k in variables.recorded || (k in %[2]s.orValue({}) && %[1]s.orValue({})[k] == %[2]s.orValue({})[k]))\n"+
		"&& %[2]s.orValue({}).all(k, k in variables.recorded || k in %[1]s.orValue({}))", now, was)
}

// elementDiffers returns that the elements g and w of a map or a list differ only in the fields.
func elementDiffers(fields []ownField) string {
	terms := append([]string{"type(g) == map && type(w) == map", except("g", "w", namesAt(fields, 0))}, deeper("g", "w", fields, 0)...)
	return "(g == w || (" + strings.Join(terms, "\n&& ") + "))"
}

func mapDiffers(now, was string, fields ...ownField) string {
	return fmt.Sprintf("%[1]s.orValue({}).all(n, n in %[2]s.orValue({}) && [%[1]s.orValue({})[n]].all(g, [%[2]s.orValue({})[n]].all(w,\n%[3]s)))\n"+
		"&& %[2]s.orValue({}).all(n, n in %[1]s.orValue({}))", now, was, elementDiffers(fields))
}

func listDiffers(key, now, was string, fields ...ownField) string {
	return fmt.Sprintf("%[1]s.orValue([]).map(g, g.?%[3]s) == %[2]s.orValue([]).map(w, w.?%[3]s)\n"+
		"&& %[1]s.orValue([]).all(g, %[2]s.orValue([]).exists(w, g.?%[3]s == w.?%[3]s && %[4]s))", now, was, key, elementDiffers(fields))
}

// ownElementDiffers returns that only the element of the manager differs, and that it contains nothing
// but annotations. The operator may add the time.
func ownElementDiffers(place framework.Place, now, was string) string {
	own, others := fmt.Sprintf("p.?%s.orValue('') == '%s'", place.Key, place.Manager), fmt.Sprintf("p.?%s.orValue('') != '%s'", place.Key, place.Manager)
	return fmt.Sprintf("%[1]s.orValue([]).filter(p, %[4]s) == %[2]s.orValue([]).filter(p, %[4]s)\n"+
		"&& %[1]s.orValue([]).filter(p, %[3]s).all(p, p.all(f, f in ['%[5]s', 'time', '%[6]s'])\n&& %[7]s\n&& %[8]s.orValue([]).all(g, g.all(f, f in ['%[9]s', '%[10]s'])\n&& %[11]s\n"+
		"&& %[12]s.orValue({}).all(k, k in variables.recorded)))",
		now, was, own, others, place.Key, place.Own.Path[0], chain("p", place.Own.Path), optional("p", place.Own.Path),
		place.Own.Key, place.Own.Below[0], chain("g", place.Own.Below), optional("g", place.Own.Below))
}

// chain returns that the maps on the path contain no other fields.
func chain(root string, path []string) string {
	var terms []string
	for depth := 1; depth < len(path); depth++ {
		terms = append(terms, fmt.Sprintf("%s.orValue({}).all(f, f == '%s')", optional(root, path[:depth]), path[depth]))
	}
	return strings.Join(terms, " && ")
}
