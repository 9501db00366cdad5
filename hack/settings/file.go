package main

import (
	"bytes"
	"fmt"
	"strings"

	"sigs.k8s.io/yaml"

	"kube-queue.dev/kube-queue/pkg/program/settings"
)

// file is a configuration file with all defaults, each with what it means.
func file(set *settings.Set) ([]byte, error) {
	var out bytes.Buffer
	fmt.Fprintf(&out, "# All settings of %s with their defaults: leave out what you do not change.\n"+
		"# Written by hack/settings: make generate.\napiVersion: %s\nkind: %s\n", set.Program(), settings.APIVersion, set.Kind())
	var open []string // the sections that the last field stands in
	for _, setting := range set.All() {
		path := strings.Split(setting.Field, ".")
		sections, name := path[:len(path)-1], path[len(path)-1]
		common := 0
		for common < len(open) && common < len(sections) && open[common] == sections[common] {
			common++
		}
		for i, section := range sections[common:] {
			fmt.Fprintf(&out, "%s%s:\n", indent(common+i), section)
		}
		open = sections
		value, err := yaml.Marshal(map[string]any{name: setting.Value()})
		if err != nil {
			return nil, fmt.Errorf("the default of %s: %w", setting.Field, err)
		}
		for _, line := range wrap(setting.Meaning(), 90-len(indent(len(sections)))) {
			fmt.Fprintf(&out, "%s# %s\n", indent(len(sections)), line)
		}
		for line := range strings.Lines(string(value)) {
			out.WriteString(indent(len(sections)) + line)
		}
	}
	return out.Bytes(), nil
}

func indent(level int) string { return strings.Repeat("  ", level) }

// wrap breaks a text into lines of at most so many letters, where a word allows.
func wrap(text string, width int) []string {
	var lines []string
	for _, word := range strings.Fields(text) {
		last := len(lines) - 1
		if last < 0 || len(lines[last])+1+len(word) > width {
			lines = append(lines, word)
			continue
		}
		lines[last] += " " + word
	}
	return lines
}
