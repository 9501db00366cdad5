package main

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"kube-queue.dev/kube-queue/extensions/framework"
)

// chartFence is what the fence of managed namespaces needs to know about a kind: expressions over object and
// oldObject that never fail.
type chartFence struct {
	// Readable: the operator can read the object. WasReadable is the same for oldObject.
	Readable    string `json:"readable"`
	WasReadable string `json:"wasReadable"`
	// Suspended and WasSuspended hold only for readable objects.
	Suspended    string `json:"suspended"`
	WasSuspended string `json:"wasSuspended"`
	// Ended: oldObject has ended.
	Ended string `json:"ended"`
	// Scale is the field that the subresource scale sets; empty for none.
	Scale string `json:"scale,omitempty"`
	// ScaledSuspended: params, the scaled object, is not running. ScaledElastic: params may have the size of object,
	// a Scale; empty if it never may.
	ScaledSuspended string `json:"scaledSuspended,omitempty"`
	ScaledElastic   string `json:"scaledElastic,omitempty"`
	// sized: rules limit the size, or no field decides it.
	sized bool
	// Rules hold for two readable objects.
	Rules []fenceRule `json:"rules"`
	// Own: the spec differs only in fields that job-extensions sets.
	Own string `json:"own"`
}

type fenceRule struct {
	Expression string `json:"expression"`
	// Fields are the fields that the rule is about, for the message.
	Fields string `json:"fields"`
	// Always: the rule holds for suspended objects too. Their operator might not have stopped the pods yet, and never
	// stops those of an invalid object.
	Always bool `json:"always,omitempty"`
}

func fenceOf(kind framework.Kind, autoscaled bool) (chartFence, error) {
	fence := kind.Fence
	sized := fence.Declared || len(fence.Frozen)+len(fence.Groups) > 0 || fence.Size != ""
	if kind.ManagedBy != "" { // its operator would no longer suspend the job
		fence.Frozen = append(slices.Clone(fence.Frozen), append(slices.Clone(parent(kind.SuspendPath)), "managedBy"))
	}
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
		Ended: ended, Scale: dotted(fence.Scale), sized: sized, Own: ownFields(kind, autoscaled),
	}
	if len(fence.Frozen) > 0 {
		found.Rules = append(found.Rules, frozen(fence.Frozen, fence.EmptyIsUnset))
	}
	for _, valid := range fence.Valid {
		found.Rules = append(found.Rules, fenceRule{
			Expression: fmt.Sprintf("(%s)\n|| !(%s)", replaceWord(valid.Expression, "job", "object"), replaceWord(valid.Expression, "job", "oldObject")),
			Fields:     "the validity of " + valid.Name,
			Always:     true,
		})
	}
	if fence.Size != "" {
		found.Rules = append(found.Rules, fenceRule{
			Expression: replaceWord(fence.Size, "job", "object") + " <= " + replaceWord(fence.Size, "job", "oldObject"),
			Fields:     "the number of pods",
		})
	}
	for _, groups := range fence.Groups {
		found.Rules = append(found.Rules, groupRule(groups))
	}
	if fence.Scale != nil {
		found.ScaledSuspended = fmt.Sprintf("!(%s) || %s", readable("params", maps), suspended("params", kind.SuspendPath))
		if groups := fence.Groups[0]; groups.Elastic != "" {
			found.ScaledElastic = fmt.Sprintf("%s && object.spec.replicas <= %s", replaceWord(groups.Elastic, "job", "params"), replaceWord(groups.Most, "job", "params"))
		}
	}
	return found, nil
}

// readable returns the expression that the spec exists and the parents of all fields are maps.
func readable(root string, maps [][]string) string {
	terms := []string{fmt.Sprintf("type(%s.?spec.orValue('')) == map", root)}
	for _, path := range maps {
		for depth := 2; depth <= len(path); depth++ {
			if term := fmt.Sprintf("type(%s.orValue({})) == map", field(root, path[:depth])); !slices.Contains(terms, term) {
				terms = append(terms, term)
			}
		}
	}
	return strings.Join(terms, " && ")
}

func suspended(root string, path []string) string {
	return field(root, path) + ".orValue(false) == true"
}

// field returns an optional field of the spec, status or metadata, such as object.spec.?runPolicy.?suspend. The name
// of a label or annotation contains a slash.
func field(root string, path []string) string {
	text := root + "." + path[0]
	for _, name := range path[1:] {
		if strings.Contains(name, "/") {
			text += "[?'" + name + "']"
		} else {
			text += ".?" + name
		}
	}
	return text
}

func frozen(paths [][]string, emptyIsUnset bool) fenceRule {
	value := ""
	if emptyIsUnset {
		value = ".orValue('')"
	}
	var same, names []string
	for _, path := range paths {
		same = append(same, field("object", path)+value+" == "+field("oldObject", path)+value)
		names = append(names, dotted(path))
	}
	return fenceRule{Expression: strings.Join(same, "\n&& "), Fields: strings.Join(names, ", ")}
}

// groupRule returns the rule that no group is added, no group grows and no other field of a group changes.
func groupRule(groups framework.Groups) fenceRule {
	now, was := field("object", groups.Path), field("oldObject", groups.Path)
	fits := groups.Size + " <= " + replaceWord(groups.Size, "group", "was")
	if groups.Elastic != "" {
		most := replaceWord(replaceWord(groups.Most, "job", "oldObject"), "group", "was")
		fits = fmt.Sprintf("(%s\n  || (%s && %s <= %s))", fits, replaceWord(groups.Elastic, "job", "oldObject"), groups.Size, most)
	}
	same := strings.ReplaceAll(except("group", "was", groups.Sizes)+"\n&& "+fits, "\n", "\n    ")
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

// replaceWord replaces a variable of an expression.
func replaceWord(expression, variable, by string) string {
	return regexp.MustCompile(`\b`+variable+`\b`).ReplaceAllLiteralString(expression, by)
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
		terms = append(terms, fmt.Sprintf("%s.orValue('') in ['%s']", field("oldObject", ended.Path), strings.Join(ended.Values, "', '")))
		if ended.Label != "" {
			terms = append(terms, fmt.Sprintf("%s.orValue('') == 'true'", field("oldObject", []string{"metadata", "labels", ended.Label})))
		}
		return strings.Join(terms, " && "), nil
	case len(ended.Path) > 0:
		return "", fmt.Errorf("the end at %s is too deep", dotted(ended.Path))
	default:
		return "false", nil
	}
}
