package main

import (
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

const (
	// module is the prefix of the import path of each package.
	module = "kube-queue.dev/kube-queue/"
	// modules stands for the other modules that a package imports.
	modules = "go.mod"
	// listFormat is the format that parse reads.
	listFormat = `{{.ImportPath}};{{join .Deps ";"}}`
)

// graph maps packages to what they import, directly or indirectly. A test binary is the package FOLDER.test. Folders
// and files are relative to the repository.
type graph map[string][]string

// change holds changed files. built are the packages with changed files other than tests, and tested are the packages
// with any changed file.
type change struct {
	files         []string
	built, tested map[string]bool
}

// changeOf returns the change of files. A file belongs to the package in its folder, or in the nearest folder above,
// which may embed it.
func (g graph) changeOf(files []string) change {
	c := change{files, map[string]bool{}, map[string]bool{}}
	for _, file := range files {
		folder := path.Dir(file)
		for folder != "." && g[folder] == nil {
			folder = path.Dir(folder)
		}
		c.built[folder] = c.built[folder] || !strings.HasSuffix(file, "_test.go")
		c.tested[folder] = true
		c.built[modules] = c.built[modules] || file == modules || file == "go.sum"
	}
	return c
}

// broken returns the folders whose tests a change can break and why: those that changed, then those
// that import these, then those that read changed files.
func (g graph) broken(c change, folders []string, reads func(folder string) []string) (broken []string, why map[string]string) {
	why = map[string]string{}
	for _, folder := range folders {
		tests := g[folder+".test"]
		if tests == nil {
			continue
		}
		read := reads(folder)
		for _, file := range c.files {
			if slices.ContainsFunc(read, func(r string) bool { return r == "." || r == file || strings.HasPrefix(file, r+"/") }) {
				why[folder] = "reads " + file
			}
		}
		if i := slices.IndexFunc(tests, func(imported string) bool { return c.built[imported] }); i >= 0 {
			why[folder] = "imports " + tests[i]
		}
		if c.tested[folder] {
			why[folder] = "changed"
		}
	}
	return slices.SortedFunc(maps.Keys(why), func(a, b string) int {
		return strings.Compare(why[a][:1]+a, why[b][:1]+b) // changed, imports, reads
	}), why
}

// parse returns the packages in the output of go list -test. It leaves out what else it lists: packages as compiled
// for a test binary, such as "pkg/queue [pkg/queue.test]".
func parse(list string) graph {
	g := graph{}
	for line := range strings.Lines(list) {
		fields := strings.Split(strings.TrimSpace(line), ";")
		if strings.Contains(fields[0], " ") {
			continue
		}
		deps := []string{modules}
		for _, dep := range fields[1:] {
			if dep, own := strings.CutPrefix(dep, module); own {
				deps = append(deps, strings.Fields(dep)[0])
			}
		}
		g[strings.TrimPrefix(fields[0], module)] = deps
	}
	return g
}

// upward matches a path in a test that is its folder or leads out of it.
var upward = regexp.MustCompile(`"(\.|\.\.(/[^"]*)?)"`)

// reads returns the files and folders that the tests in a folder read.
func reads(folder string) (read []string) {
	tests, _ := filepath.Glob(folder + "/*_test.go")
	for _, test := range tests {
		text, _ := os.ReadFile(test) // without it, go test fails
		// The arguments of filepath.Join("..", "..") are a path too.
		for _, m := range upward.FindAllStringSubmatch(strings.ReplaceAll(string(text), `", "`, "/"), -1) {
			read = append(read, path.Join(folder, m[1]))
		}
	}
	return read
}
