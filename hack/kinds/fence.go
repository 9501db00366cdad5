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

func fenceOf(kind framework.Kind) (chartFence, error) {
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
		Ended: ended, Scale: dotted(fence.Scale), Own: ownFields(kind),
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

// ownFields returns that the specs differ only in the suspend field and in the fields that a
// hold sets.
func ownFields(kind framework.Kind) string {
	paths := [][]string{kind.SuspendPath}
	for _, setting := range kind.Sets {
		paths = append(paths, setting.Path)
	}
	return onlyDiffer("object.?spec", "oldObject.?spec", paths, 1)
}

// onlyDiffer returns that two maps are equal except at the paths, which begin at the depth.
func onlyDiffer(now, was string, paths [][]string, depth int) string {
	var names []string
	below := map[string][][]string{}
	for _, path := range paths {
		if len(path) <= depth {
			continue // check rejects it
		}
		name := path[depth]
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
		if len(path) > depth+1 {
			below[name] = append(below[name], path)
		}
	}
	except := "['" + strings.Join(names, "', '") + "']"
	terms := []string{fmt.Sprintf("%[1]s.orValue({}).all(f, f in %[3]s || (f in %[2]s.orValue({}) && %[1]s.orValue({})[f] == %[2]s.orValue({})[f]))\n&& %[2]s.orValue({}).all(f, f in %[3]s || f in %[1]s.orValue({}))", now, was, except)}
	for _, name := range names {
		if len(below[name]) > 0 {
			terms = append(terms, onlyDiffer(now+".?"+name, was+".?"+name, below[name], depth+1))
		}
	}
	return strings.Join(terms, "\n&& ")
}
