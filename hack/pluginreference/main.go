// Pluginreference writes docs/reference/kubectl-kube-queue.md: all commands of the kubectl plugin with their flags,
// from the program itself. update-codegen.sh runs it.
package main

import (
	"embed"
	"errors"
	"io/fs"
	"strings"
	"text/template"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"kube-queue.dev/kube-queue/hack/internal/generator"
	"kube-queue.dev/kube-queue/pkg/plugin/command"
)

func main() {
	generator.Main("FILE", func(file string) error {
		return generator.Rewrite(file, func(string) (string, error) { return page(command.New(command.Environment{})) })
	})
}

// pageTemplate is the template of the page. Its blocks are text, because the tests of the documentation would run
// commands.
//
//go:embed page.tpl
var pageTemplate string

func page(root *cobra.Command) (string, error) {
	var commands, sharing []*cobra.Command
	for _, cmd := range root.Commands() {
		if cmd.Hidden || cmd.Name() == "completion" || cmd.Name() == "help" {
			continue
		}
		commands = append(commands, cmd)
		if usage(cmd.Flags(), isShared) != "" {
			sharing = append(sharing, cmd)
		}
	}
	var text strings.Builder
	err := template.Must(template.New("page").Funcs(template.FuncMap{
		"period": func(short string) string { return strings.TrimSuffix(short, ".") + "." },
		"long": func(cmd *cobra.Command) string {
			return strings.TrimSpace(strings.Replace(cmd.Long, command.JobHelp, "", 1))
		},
		"flags":  func(cmd *cobra.Command) string { return usage(cmd.NonInheritedFlags(), isOwn) },
		"sample": sampleOf,
	}).Parse(pageTemplate)).Execute(&text, map[string]any{
		"Shared":   usage(sharing[0].Flags(), isShared),
		"Sharing":  sharing,
		"JobHelp":  strings.TrimSpace(command.JobHelp),
		"Commands": commands,
	})
	return text.String(), err
}

// samples have a command in the first line and its output in the others. A test of package command compares them.
//
//go:embed samples/*.txt
var samples embed.FS

type sample struct{ Command, Output string }

// sampleOf returns the sample of a command; nil if it has none.
func sampleOf(cmd *cobra.Command) (*sample, error) {
	content, err := samples.ReadFile("samples/" + cmd.Name() + ".txt")
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	command, output, _ := strings.Cut(string(content), "\n")
	return &sample{command, strings.TrimRight(output, "\n")}, err
}

// isShared reports whether several commands have the flag, which the page shows once.
func isShared(f *pflag.Flag) bool { return f.Name == "dry-run" }

func isOwn(f *pflag.Flag) bool { return !isShared(f) }

// usage describes the flags that the help shows.
func usage(flags *pflag.FlagSet, shows func(*pflag.Flag) bool) string {
	set := pflag.NewFlagSet("", pflag.ContinueOnError)
	flags.VisitAll(func(f *pflag.Flag) {
		if !f.Hidden && f.Name != "help" && shows(f) {
			set.AddFlag(f)
		}
	})
	return strings.TrimRight(set.FlagUsagesWrapped(100), "\n")
}
