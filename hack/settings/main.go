// Settings generates the reference of the settings: the page settings.md, and for each
// program a configuration file with the defaults. update-codegen.sh runs it.
package main

import (
	"fmt"
	"os"
	"path/filepath"

	extensions "kube-queue.dev/kube-queue/cmd/job-extensions/options"
	controller "kube-queue.dev/kube-queue/cmd/kube-queue-controller/options"
	"kube-queue.dev/kube-queue/pkg/program"
	"kube-queue.dev/kube-queue/pkg/program/settings"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: settings DOCS-FOLDER")
		os.Exit(2)
	}
	if err := write(os.Args[1]); err != nil {
		fmt.Fprintf(os.Stderr, "settings: %v\n", err)
		os.Exit(1)
	}
}

// programs returns the programs with settings.
func programs() []program.Program {
	return []program.Program{controller.New().Program(), extensions.New().Program()}
}

func write(docs string) error {
	if err := os.MkdirAll(filepath.Join(docs, "config"), 0o755); err != nil {
		return err
	}
	var sets []*settings.Set
	for _, p := range programs() {
		set, err := program.Settings(p)
		if err != nil {
			return fmt.Errorf("%s: %w", p.Name, err)
		}
		sets = append(sets, set)
		text, err := file(set)
		if err != nil {
			return fmt.Errorf("%s: %w", p.Name, err)
		}
		if err := os.WriteFile(filepath.Join(docs, "config", p.Name+".yaml"), text, 0o644); err != nil {
			return err
		}
	}
	return os.WriteFile(filepath.Join(docs, "settings.md"), page(sets[0], sets[1]), 0o644)
}
