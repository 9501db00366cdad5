// Package build compiles the programs of a local cluster, each from its own small Go module,
// and stores the results in a cache outside of the work tree.
//
// Terms:
//   - component: a module in components/ and the program built from it. A folder can have
//     several modules for other versions of the program.
//   - key: a hash over everything that determines the result (go.mod, go.sum,
//     sources, Go version, platform, flags). The folder of a key in the cache is
//     always complete, because it is renamed into place.
package build

import (
	"os"
	"slices"
	"strings"
)

// Component is a module in components/ and the program built from it.
type Component struct {
	// Name is the folder in components/.
	Name string
	// ModFile is a file that is used instead of go.mod, with a .sum file of the same name. Without it
	// go.mod is used.
	ModFile string
	// Package is the package to build, relative to the module.
	Package string
	// Binary is the name of the program.
	Binary string
	// Links are additional names of a program that behaves according to its name.
	Links []string
	// LDFlags are the linker's flags.
	LDFlags string
	// Files are copied from modules, so that a start from the cache needs no modules.
	Files []ModuleFiles
}

// ModuleFiles are files of a module that are needed at run time.
type ModuleFiles struct {
	Module string
	// Paths are slash-separated and relative to the root of the module.
	Paths []string
	// Into is the target folder, relative to the component's folder in the cache.
	Into string
}

// goFlags replace the caller's GOFLAGS, so that the result does not depend on the caller.
const goFlags = "-mod=readonly -buildvcs=false -trimpath"

// goFlags returns the flags of go commands in the module.
func (c Component) goFlags() string {
	if c.ModFile == "" {
		return goFlags
	}
	return goFlags + " -modfile=" + c.ModFile
}

// modules returns the names of the files of the module, and whether the name is that of another module
// in the same folder.
func (c Component) modules() (mod string, other func(name string) bool) {
	mod = "go.mod"
	if c.ModFile != "" {
		mod = c.ModFile
	}
	sum := strings.TrimSuffix(mod, ".mod") + ".sum"
	return mod, func(name string) bool {
		return name != mod && name != sum && (strings.HasSuffix(name, ".mod") || strings.HasSuffix(name, ".sum"))
	}
}

// environment returns the environment of a go command with these flags. It omits settings of the caller that would
// change the result.
func environment(flags string, extra ...string) []string {
	inherited := slices.DeleteFunc(os.Environ(), func(variable string) bool {
		name, _, _ := strings.Cut(variable, "=")
		return slices.Contains([]string{"GOFLAGS", "GOWORK", "CGO_ENABLED", "GOOS", "GOARCH", "PWD"}, name)
	})
	return slices.Concat(inherited, []string{"GOFLAGS=" + flags, "GOWORK=off", "CGO_ENABLED=0"}, extra)
}
