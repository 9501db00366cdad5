package settings

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Patterns is a list of file patterns, each with a verbosity, as in component-base; the flag has pattern=N.
func Patterns() Form { return list("a list", Form{pattern, patternFields}) }

// Types is a list of types of devices; the flag has RESOURCE:LABEL=VALUE:TYPE. An entry without label and value is
// for all other pods.
func Types() Form { return list("a list", Form{deviceType, deviceTypeFields}) }

// Resources is a list of requests and limits, each for several namespaces; the flag has an entry for each namespace,
// NAMESPACE:requests.RESOURCE=AMOUNT:limits.RESOURCE=AMOUNT.
func Resources() Form { return list("a list", Form{resources, resourcesFields}) }

func pattern(entry any) (string, error) {
	fields, err := fieldsOf(entry, "filePattern", "verbosity")
	if err != nil {
		return "", err
	}
	file, noFile := field(fields, "filePattern", oneOf("a string", asText, is[string]))
	verbosity, noNumber := field(fields, "verbosity", number())
	return file + "=" + verbosity, cmp.Or(noFile, noNumber)
}

func patternFields(entry string) any {
	file, verbosity, _ := strings.Cut(entry, "=")
	return map[string]any{"filePattern": file, "verbosity": json.Number(verbosity)}
}

func deviceType(entry any) (string, error) {
	fields, err := fieldsOf(entry, "resource", "nodeLabel", "nodeLabelValue", "type")
	if err != nil {
		return "", err
	}
	resource, noResource := field(fields, "resource", part())
	kind, noKind := field(fields, "type", part())
	_, hasLabel := fields["nodeLabel"]
	_, hasValue := fields["nodeLabelValue"]
	switch {
	case hasLabel != hasValue:
		return "", errors.New("must set both of nodeLabel and nodeLabelValue, or neither")
	case !hasLabel:
		return resource + "::" + kind, cmp.Or(noResource, noKind)
	}
	label, noLabel := field(fields, "nodeLabel", part())
	value, noValue := field(fields, "nodeLabelValue", part())
	return resource + ":" + label + "=" + value + ":" + kind, cmp.Or(noResource, noKind, noLabel, noValue)
}

func deviceTypeFields(entry string) any {
	resource, rest, _ := strings.Cut(entry, ":")
	selector, kind, _ := strings.Cut(rest, ":")
	fields := map[string]any{"resource": resource, "type": kind}
	if label, value, selects := strings.Cut(selector, "="); selects {
		fields["nodeLabel"], fields["nodeLabelValue"] = label, value
	}
	return fields
}

func resources(entry any) (string, error) {
	fields, err := fieldsOf(entry, "namespaces", "requests", "limits")
	if err != nil {
		return "", err
	}
	if fields["requests"] == nil && fields["limits"] == nil {
		return "", errors.New("must set requests or limits; {} for nothing")
	}
	requests, badRequests := amounts(fields, "requests")
	limits, badLimits := amounts(fields, "limits")
	text, noList := field(fields, "namespaces", list("a list of strings", part()))
	if err := cmp.Or(badRequests, badLimits, noList); err != nil {
		return "", err
	}
	if listed, _ := fields["namespaces"].([]any); len(listed) == 0 {
		return "", errors.New("namespaces: must list at least one namespace, or * for all other namespaces")
	}
	namespaces, both := strings.Split(text, ","), strings.Join(slices.Concat(requests, limits), ":")
	for i, namespace := range namespaces {
		namespaces[i] = namespace + ":" + both
	}
	return strings.Join(namespaces, ","), nil
}

// amounts returns the requests or the limits of an entry, each as requests.RESOURCE=AMOUNT.
func amounts(fields map[string]any, name string) ([]string, error) {
	byName, _ := fields[name].(map[string]any)
	for _, resource := range slices.Sorted(maps.Keys(byName)) {
		if strings.ContainsAny(resource, ",:=") {
			return nil, fmt.Errorf("%s: %q is not the name of a resource", name, resource)
		}
	}
	if fields[name] == nil {
		return nil, nil
	}
	amount := oneOf("a number or a string without commas", asText, is[json.Number], isPlain)
	text, err := field(fields, name, object("resources to amounts", amount.without(":", "colon")))
	texts := split(text)
	for i, amount := range texts {
		texts[i] = name + "." + amount
	}
	return texts, err
}

func resourcesFields(entry string) any {
	namespace, rest, _ := strings.Cut(entry, ":")
	byField := map[string]map[string]any{"requests": {}, "limits": {}}
	for amount := range strings.SplitSeq(rest, ":") {
		key, value, _ := strings.Cut(amount, "=")
		list, name, _ := strings.Cut(key, ".")
		if of := byField[list]; of != nil {
			of[name] = value
		}
	}
	fields := map[string]any{"namespaces": []string{namespace}, "requests": byField["requests"]}
	if len(byField["limits"]) > 0 {
		fields["limits"] = byField["limits"]
	}
	return fields
}

// part is a string between the commas and colons of a flag.
func part() Form { return plain().without(":", "colon") }

// fieldsOf returns the fields of an entry. Unknown fields are an error.
func fieldsOf(entry any, known ...string) (map[string]any, error) {
	fields, ok := entry.(map[string]any)
	if !ok {
		last := len(known) - 1
		return nil, mustBe("an object with "+strings.Join(known[:last], ", ")+" and "+known[last], entry)
	}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		if !slices.Contains(known, name) {
			return nil, fmt.Errorf("unknown field %q; known fields: %s", name, strings.Join(known, ", "))
		}
	}
	return fields, nil
}
