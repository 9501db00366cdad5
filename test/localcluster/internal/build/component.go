// Package build compiles the programs of a local cluster, each from its own small Go module,
// and stores the results in a cache outside of the work tree.
//
// Terms:
//   - component: a module in components/ and the program built from it.
//   - key: a hash over everything that determines the result (go.mod, go.sum,
//     sources, Go version, platform, flags). The folder of a key in the cache is
//     always complete, because it is renamed into place.
package build

// Component is a module in components/ and the program built from it.
type Component struct {
	// Name is the folder in components/.
	Name string
	// Package is the package to build, relative to the module.
	Package string
	// Binary is the name of the program.
	Binary string
	// Links are further names of a program that depends on its name.
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

// environment returns the environment of a go command. base is that of the caller.
func environment(base []string, extra ...string) []string {
	return append(without(base, "GOFLAGS", "GOWORK", "CGO_ENABLED", "GOOS", "GOARCH", "PWD"),
		append([]string{"GOFLAGS=" + goFlags, "GOWORK=off", "CGO_ENABLED=0"}, extra...)...)
}
