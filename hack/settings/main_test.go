package main

import (
	"os"
	"path/filepath"
	"testing"

	"kube-queue.dev/kube-queue/pkg/program"
)

const docs = "../../docs/reference"

func TestWhatIsInTheDocumentationIsWhatIsWrittenNow(t *testing.T) {
	dir := t.TempDir()
	if err := write(dir); err != nil {
		t.Fatal(err)
	}
	files := []string{"settings.md"}
	for _, p := range programs() {
		files = append(files, filepath.Join("config", p.Name+".yaml"))
	}
	for _, file := range files {
		is, err := os.ReadFile(filepath.Join(docs, file))
		if err != nil {
			t.Fatal(err)
		}
		want, err := os.ReadFile(filepath.Join(dir, file))
		if err != nil {
			t.Fatal(err)
		}
		if string(is) != string(want) {
			t.Errorf("docs/reference/%s is not up to date: make generate", file)
		}
	}
}

func TestTheExampleFilesHoldAllSettingsAndTheirDefaults(t *testing.T) {
	for _, p := range programs() {
		t.Run(p.Name, func(t *testing.T) {
			set, err := program.Settings(p)
			if err != nil {
				t.Fatal(err)
			}
			if err := set.Read([]string{"--config", filepath.Join(docs, "config", p.Name+".yaml")}, nil); err != nil {
				t.Fatal(err)
			}
			for _, setting := range set.All() {
				if setting.Text() != setting.Default() {
					t.Errorf("%s is %q, by default %q", setting.Field, setting.Text(), setting.Default())
				}
				if setting.Origin() == "" {
					t.Errorf("%s is not in the file", setting.Field)
				}
			}
			if p.Validate != nil {
				if err := p.Validate(); err != nil {
					t.Error(err)
				}
			}
		})
	}
}
