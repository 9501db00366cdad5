package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// dependency is a module that this one needs too, so that it is there without a network.
const dependency = "github.com/google/licensecheck"

// fixture writes a module with two small programs that is laid out as ours is: a version
// for the linker, a module with a sum, one that a folder replaces, a licence.
func fixture(t *testing.T) string {
	t.Helper()
	folder := t.TempDir()
	sums := ""
	for line := range strings.Lines(read(t, "go.sum")) {
		if strings.HasPrefix(line, dependency+" ") {
			sums += line
		}
	}
	version := strings.Fields(sums)[1]
	for name, content := range map[string]string{
		"go.mod": "module example.test/fixture\n\ngo 1.26.0\n\nrequire (\n\texample.test/words v0.0.0\n\t" + dependency + " " + version +
			"\n)\n\nreplace example.test/words => ./words\n",
		"go.sum":                          sums,
		"LICENSE":                         read(t, "../../LICENSE"),
		"words/go.mod":                    "module example.test/words\n\ngo 1.26.0\n",
		"words/words.go":                  "package words\n\nconst Name = \"greeter\"\n",
		"pkg/program/identity/version.go": "package identity\n\nvar linked string\n\nfunc Version() string { return linked }\n",
		"cmd/greeter/main.go": "package main\n\nimport (\n\t\"fmt\"\n\n\t\"" + dependency + "\"\n\n\t\"example.test/fixture/pkg/program/identity\"\n" +
			"\t\"example.test/words\"\n)\n\nfunc main() {\n\tlicensecheck.Scan(nil)\n\tfmt.Println(words.Name, identity.Version())\n}\n",
		"cmd/silent/main.go": "package main\n\nfunc main() {}\n",
	} {
		put(t, filepath.Join(folder, name), content)
	}
	return folder
}

func put(t *testing.T, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// build runs the program on the fixture and returns what it printed.
func build(t *testing.T, source, output string, args ...string) string {
	t.Helper()
	var out, log bytes.Buffer
	args = append([]string{"--source", source, "--output", output, "--version", "v1.2.3", "--revision", "abc", "--created", "1700000000",
		"--programs", "greeter,silent"}, args...)
	if err := start(t.Context(), args, &out, &log); err != nil {
		t.Fatalf("images %s: %v\n%s", strings.Join(args, " "), err, &log)
	}
	return out.String()
}

// contents are all files of a folder by name, with the mode of each.
func contents(t *testing.T, folder string) map[string]string {
	t.Helper()
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for _, entry := range entries {
		info, err := entry.Info()
		if err != nil {
			t.Fatal(err)
		}
		if !entry.Type().IsRegular() {
			t.Errorf("%s was left over", entry.Name())
			continue
		}
		files[entry.Name()] = info.Mode().String() + " " + read(t, filepath.Join(folder, entry.Name()))
	}
	return files
}

// stopAt ends a run as soon as it shows something.
type stopAt struct {
	text string
	stop context.CancelFunc
}

func (s stopAt) Write(data []byte) (int, error) {
	if strings.Contains(string(data), s.text) {
		s.stop()
	}
	return len(data), nil
}
