package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"

	"golang.org/x/tools/go/ssa"
	"golang.org/x/tools/go/ssa/ssautil"
)

// listed is what `go list` reports of a package.
type listed struct {
	ImportPath string
	Dir        string
	GoFiles    []string
	Imports    []string
	Export     string
	Standard   bool
	Module     *struct {
		Path string
		Main bool
	}
	Error *struct{ Err string }
}

// load builds the program of the packages that match the patterns, and of the packages of
// this module that they import. These are read as source. Of all others it reads the
// export data of the compiler, which takes little time and memory.
func load(root string, patterns ...string) (*program, error) {
	root, err := filepath.Abs(root)
	if err != nil {
		return nil, err
	}
	own, foreign, err := list(root, patterns)
	if err != nil {
		return nil, err
	}
	p := &program{fset: token.NewFileSet(), own: map[*types.Package]bool{}}
	exports, err := exportData(root, foreign)
	if err != nil {
		return nil, err
	}
	imports := &imports{own: map[string]*types.Package{}}
	imports.foreign = importer.ForCompiler(p.fset, "gc", func(path string) (io.ReadCloser, error) {
		if file := exports[path]; file != "" {
			return os.Open(file)
		}
		return nil, fmt.Errorf("no export data of package %s", path)
	})
	var all []*checked
	for _, l := range own { // imported ones first
		c, err := check(p.fset, root, l, imports)
		if err != nil {
			return nil, err
		}
		imports.own[l.ImportPath] = c.pkg
		p.own[c.pkg], p.module = true, l.Module.Path
		all = append(all, c)
	}
	p.prog = ssa.NewProgram(p.fset, ssa.InstantiateGenerics)
	for _, c := range all {
		p.createImported(c.pkg)
		c.built = p.prog.CreatePackage(c.pkg, c.files, c.info, true)
	}
	for _, c := range all {
		c.built.Build()
	}
	p.index(ssautil.AllFunctions(p.prog))
	return p, nil
}

// list returns the packages of this module, imported ones first, and the paths of the
// other packages that these import.
func list(root string, patterns []string) (own []listed, foreign []string, err error) {
	all, err := goList(root, append([]string{"-deps", "-json=ImportPath,Dir,GoFiles,Imports,Standard,Module,Error"}, patterns...))
	if err != nil {
		return nil, nil, err
	}
	isOwn := map[string]bool{}
	for _, l := range all {
		if l.Module != nil && l.Module.Main {
			own = append(own, l)
			isOwn[l.ImportPath] = true
		}
	}
	for _, l := range own {
		for _, path := range l.Imports {
			if !isOwn[path] && path != "unsafe" {
				foreign = append(foreign, path)
			}
		}
	}
	slices.Sort(foreign)
	return own, slices.Compact(foreign), nil
}

// exportData returns the files of export data of the packages and of all that they import.
func exportData(root string, paths []string) (map[string]string, error) {
	all, err := goList(root, append([]string{"-export", "-deps", "-json=ImportPath,Export,Error"}, paths...))
	if err != nil {
		return nil, err
	}
	files := map[string]string{}
	for _, l := range all {
		files[l.ImportPath] = l.Export
	}
	return files, nil
}

func goList(root string, args []string) ([]listed, error) {
	command := exec.Command("go", append([]string{"list"}, args...)...)
	command.Dir = root
	var stderr bytes.Buffer
	command.Stderr = &stderr
	out, err := command.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w: %s", err, bytes.TrimSpace(stderr.Bytes()))
	}
	var all []listed
	for decoder := json.NewDecoder(bytes.NewReader(out)); ; {
		var l listed
		if err := decoder.Decode(&l); errors.Is(err, io.EOF) {
			return all, nil
		} else if err != nil {
			return nil, fmt.Errorf("reading what go list prints: %w", err)
		}
		if l.Error != nil {
			return nil, fmt.Errorf("package %s: %s", l.ImportPath, l.Error.Err)
		}
		all = append(all, l)
	}
}

// imports resolves what packages import.
type imports struct {
	own     map[string]*types.Package
	foreign types.Importer
}

// Import implements types.Importer.
func (i *imports) Import(path string) (*types.Package, error) {
	if path == "unsafe" {
		return types.Unsafe, nil
	}
	if pkg := i.own[path]; pkg != nil {
		return pkg, nil
	}
	return i.foreign.Import(path)
}

// checked is a package with its types.
type checked struct {
	files []*ast.File
	pkg   *types.Package
	info  *types.Info
	built *ssa.Package
}

// check parses a package of the repository at root and checks its types.
func check(fset *token.FileSet, root string, l listed, imports types.Importer) (*checked, error) {
	var files []*ast.File
	for _, name := range l.GoFiles {
		path := filepath.Join(l.Dir, name)
		source, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		// As git names it: the tree may be a copy that is gone when somebody reads the error.
		if below, err := filepath.Rel(root, path); err == nil {
			path = filepath.ToSlash(below)
		}
		file, err := parser.ParseFile(fset, path, source, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		files = append(files, file)
	}
	info := &types.Info{
		Types: map[ast.Expr]types.TypeAndValue{}, Defs: map[*ast.Ident]types.Object{}, Uses: map[*ast.Ident]types.Object{},
		Implicits: map[ast.Node]types.Object{}, Instances: map[*ast.Ident]types.Instance{}, Scopes: map[ast.Node]*types.Scope{},
		Selections: map[*ast.SelectorExpr]*types.Selection{}, FileVersions: map[*ast.File]string{},
	}
	config := types.Config{Importer: imports, Sizes: types.SizesFor("gc", "amd64")}
	pkg, err := config.Check(l.ImportPath, fset, files, info)
	if err != nil {
		return nil, fmt.Errorf("package %s: %w", l.ImportPath, err)
	}
	return &checked{files: files, pkg: pkg, info: info}, nil
}

// createImported gives the packages that a package imports to the SSA program, which
// needs them all.
func (p *program) createImported(pkg *types.Package) {
	for _, imported := range pkg.Imports() {
		if p.prog.Package(imported) == nil && !p.own[imported] {
			p.prog.CreatePackage(imported, nil, nil, true)
			p.createImported(imported)
		}
	}
}
