package main

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"kube-queue.dev/kube-queue/pkg/program/settings"
)

// page has a table for each group of settings; groups of both programs stand once.
func page(controller, extensions *settings.Set) []byte {
	var out bytes.Buffer
	fmt.Fprintf(&out, `# All settings

<!-- Written by hack/settings from the programs' own definitions: make generate. -->

Each setting has a flag and a field of the configuration file, some an environment
variable. How they go together is reported in [configuration.md](../operations/configuration.md#settings).
Files with all defaults: [config/%[1]s.yaml](config/%[1]s.yaml),
[config/%[2]s.yaml](config/%[2]s.yaml).

`, controller.Program(), extensions.Program())
	for _, part := range []struct {
		title  string
		groups []*settings.Group
	}{
		{controller.Program(), groupsOf(controller, extensions, false)},
		{extensions.Program(), groupsOf(extensions, controller, false)},
		{"Both programs", groupsOf(controller, extensions, true)},
	} {
		fmt.Fprintf(&out, "## %s\n\n", part.title)
		for _, group := range part.groups {
			table(&out, group)
		}
	}
	return append(bytes.TrimRight(out.Bytes(), "\n"), '\n')
}

// groupsOf are the groups of a program that the other one has just so too, or has not.
func groupsOf(set, other *settings.Set, shared bool) []*settings.Group {
	return slices.DeleteFunc(slices.Clone(set.Groups()), func(group *settings.Group) bool {
		has := slices.ContainsFunc(other.Groups(), func(o *settings.Group) bool { return rows(o) == rows(group) && o.Heading == group.Heading })
		return has != shared
	})
}

func table(out *bytes.Buffer, group *settings.Group) {
	fmt.Fprintf(out, "### %s\n\n| flag | environment | field | default | meaning |\n|---|---|---|---|---|\n%s\n", group.Heading, rows(group))
}

func rows(group *settings.Group) string {
	var out strings.Builder
	for _, s := range group.Settings {
		dashes := "--"
		if len(s.Flag) == 1 {
			dashes = "-"
		}
		var env []string
		for _, name := range s.Env {
			env = append(env, code(name))
		}
		fmt.Fprintf(&out, "| `%s%s` | %s | `%s` | %s | %s |\n", dashes, s.Flag, strings.Join(env, ", "), s.Field, code(s.Default()), cell(s.Meaning()))
	}
	return out.String()
}

func code(text string) string {
	if text == "" {
		return ""
	}
	return "`" + text + "`"
}

// cell is a text in a table of Markdown.
func cell(text string) string {
	return strings.NewReplacer("|", `\|`, "<", "&lt;", "\n", " ").Replace(strings.Join(strings.Fields(text), " "))
}
