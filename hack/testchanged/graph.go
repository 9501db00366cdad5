package main

import (
	"maps"
	"os"
	"path"
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

// node is a package: what it and its test binary import, directly or indirectly, and the files and folders that its
// tests read. tests is nil if it has no tests.
type node struct{ imports, tests, reads []string }

// graph maps folders to packages. Folders and files are relative to the repository.
type graph map[string]*node

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

// broken returns the packages whose tests a change can break and why: those that changed, then those
// that import these, then those that read changed files.
func (g graph) broken(c change) (folders []string, why map[string]string) {
	why = map[string]string{}
	for folder, n := range g {
		if n.tests == nil {
			continue
		}
		for _, file := range c.files {
			if slices.ContainsFunc(n.reads, func(r string) bool { return r == "." || r == file || strings.HasPrefix(file, r+"/") }) {
				why[folder] = "reads " + file
			}
		}
		if i := slices.IndexFunc(n.tests, func(imported string) bool { return c.built[imported] }); i >= 0 {
			why[folder] = "imports " + n.tests[i]
		}
		if c.tested[folder] {
			why[folder] = "changed"
		}
	}
	return slices.SortedFunc(maps.Keys(why), func(a, b string) int {
		return strings.Compare(why[a][:1]+a, why[b][:1]+b) // changed, imports, reads
	}), why
}

// parse returns the packages in the output of go list -test.
func parse(list string) graph {
	g := graph{}
	for line := range strings.Lines(list) {
		fields := strings.Split(strings.TrimSpace(line), ";")
		folder, binary := strings.CutSuffix(strings.TrimPrefix(fields[0], module), ".test")
		if strings.Contains(folder, " ") { // a package as compiled for a test binary
			continue
		}
		if g[folder] == nil {
			g[folder] = &node{}
		}
		deps := []string{modules}
		for _, dep := range fields[1:] {
			if dep, own := strings.CutPrefix(dep, module); own {
				deps = append(deps, strings.Fields(dep)[0])
			}
		}
		if binary {
			g[folder].tests = deps
		} else {
			g[folder].imports = deps
		}
	}
	return g
}

// upward matches a path in a test that is its folder or leads out of it.
var upward = regexp.MustCompile(`"(\.|\.\.(/[^"]*)?)"`)

// use adds to the packages what their tests use without importing it. Unit tests run no program.
func (g graph) use(unit map[string]bool) error {
	for folder, n := range g {
		files, _ := os.ReadDir(folder)
		for _, file := range files {
			if !strings.HasSuffix(file.Name(), "_test.go") {
				continue
			}
			text, err := os.ReadFile(path.Join(folder, file.Name()))
			if err != nil {
				return err
			}
			// The arguments of filepath.Join("..", "..") are a path too.
			for _, m := range upward.FindAllStringSubmatch(strings.ReplaceAll(string(text), `", "`, "/"), -1) {
				n.reads = append(n.reads, path.Join(folder, m[1]))
			}
		}
		if n.tests == nil || unit[folder] {
			continue
		}
		for _, of := range append(slices.Clone(n.tests), folder) {
			for _, used := range uses[of] {
				if program := g[used]; program == nil {
					n.reads = append(n.reads, used)
				} else {
					n.tests = slices.Concat(n.tests, []string{used}, program.imports)
				}
			}
		}
	}
	return nil
}
