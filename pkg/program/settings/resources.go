package settings

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Fields of an entry of Resources.
const (
	namespacesField = "namespaces"
	requestsField   = "requests"
	limitsField     = "limits"
)

// namespaceResources converts an entry of Resources to the syntax of the flag, which has an
// entry for each namespace.
func namespaceResources(entry any) (string, error) {
	fields, ok := entry.(map[string]any)
	if !ok {
		return "", fmt.Errorf("must be an object with %s, %s and %s, not %s", namespacesField, requestsField, limitsField, written(entry))
	}
	if err := onlyFields(fields, namespacesField, requestsField, limitsField); err != nil {
		return "", err
	}
	amounts, err := amountsOf(fields)
	if err != nil {
		return "", err
	}
	text, err := join(fields[namespacesField], "a list of strings", func(namespace any) (string, error) {
		name, err := withoutColon(oneOf(namespace, "a string without commas", isPlain))
		return name + ":" + strings.Join(amounts, ":"), err
	})
	if err == nil && text == "" {
		err = errors.New("must list at least one namespace, or * for all other namespaces")
	}
	if err != nil {
		return "", fmt.Errorf("%s: %w", namespacesField, err)
	}
	return text, nil
}

// amountsOf returns the requests and limits of an entry as requests.RESOURCE=AMOUNT and
// limits.RESOURCE=AMOUNT.
func amountsOf(fields map[string]any) ([]string, error) {
	var amounts []string
	given := false
	for _, field := range []string{requestsField, limitsField} {
		if fields[field] == nil {
			continue
		}
		given = true
		byName, ok := fields[field].(map[string]any)
		if !ok {
			return nil, fmt.Errorf("%s: must map resources to amounts, not %s", field, written(fields[field]))
		}
		for _, name := range slices.Sorted(maps.Keys(byName)) {
			if strings.ContainsAny(name, ",:=") {
				return nil, fmt.Errorf("%s: %q is not the name of a resource", field, name)
			}
			amount, err := withoutColon(oneOf(byName[name], "a number or a string without commas", isNumber, isPlain))
			if err != nil {
				return nil, fmt.Errorf("%s: %s: %w", field, name, err)
			}
			amounts = append(amounts, field+"."+name+"="+amount)
		}
	}
	if !given {
		return nil, fmt.Errorf("must set %s or %s; {} for nothing", requestsField, limitsField)
	}
	return amounts, nil
}

// namespaceResourcesFields converts an entry of the flag to the syntax of the file.
func namespaceResourcesFields(entry string) map[string]any {
	namespace, rest, _ := strings.Cut(entry, ":")
	requests, limits := map[string]string{}, map[string]string{}
	for amount := range strings.SplitSeq(rest, ":") {
		key, value, _ := strings.Cut(amount, "=")
		if name, isRequest := strings.CutPrefix(key, requestsField+"."); isRequest {
			requests[name] = value
		} else if name, isLimit := strings.CutPrefix(key, limitsField+"."); isLimit {
			limits[name] = value
		}
	}
	fields := map[string]any{namespacesField: []string{namespace}, requestsField: requests}
	if len(limits) > 0 {
		fields[limitsField] = limits
	}
	return fields
}
