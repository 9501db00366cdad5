// Settings generates the reference of the settings: the page settings.md, and for each
// program a configuration file with the defaults. update-codegen.sh runs it.
package main

import (
	"fmt"
	"path/filepath"

	extensions "kube-queue.dev/kube-queue/cmd/job-extensions/options"
	controller "kube-queue.dev/kube-queue/cmd/kube-queue-controller/options"
	web "kube-queue.dev/kube-queue/cmd/kube-queue-web/options"
	"kube-queue.dev/kube-queue/hack/internal/generator"
	"kube-queue.dev/kube-queue/pkg/program"
	"kube-queue.dev/kube-queue/pkg/program/settings"
)

func main() { generator.Main("DOCS-FOLDER", write) }

func programs() []program.Program {
	return []program.Program{controller.New().Program(), extensions.New().Program(), web.New().Program()}
}

func write(docs string) error {
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
		if err := generator.Rewrite(filepath.Join(docs, "config", p.Name+".yaml"), generator.Whole(text)); err != nil {
			return err
		}
	}
	return generator.Rewrite(filepath.Join(docs, "settings.md"), generator.Whole(page(sets[0], sets[1], sets[2])))
}
