// Package build compiles the programs of a local cluster, each from its own small Go module,
// and stores the results in a cache outside of the work tree.
//
// Terms:
//   - component: a module in components/ and the program built from it.
//   - key: a hash over everything that determines the result (go.mod, go.sum,
//     sources, Go version, platform, flags). The folder of a key in the cache is
//     always complete, because it is renamed into place.
package build

// Component is a module below components/ and what is made of it.
type Component struct {
	// Name is the folder below components/.
	Name string
	// Package is what is built, as seen from the module.
	Package string
	// Binary is the name of the program.
	Binary string
	// Links are further names of the program, for one that acts by its name.
	Links []string
	// LDFlags are the linker's flags.
	LDFlags string
	// Files come along out of modules, so that a start from the cache needs no
	// module at all.
	Files []ModuleFiles
}

// ModuleFiles are files of a module that are needed at run time.
type ModuleFiles struct {
	Module string
	// Paths are slash-separated, below the module's root.
	Paths []string
	// Into is the folder, below the component's in the cache, that takes them.
	Into string
}

// goFlags replace the caller's: what is built must not depend on who builds.
const goFlags = "-mod=readonly -buildvcs=false -trimpath"

// environment is what a go command runs with; base is the caller's.
func environment(base []string, extra ...string) []string {
	return append(without(base, "GOFLAGS", "GOWORK", "CGO_ENABLED", "GOOS", "GOARCH", "PWD"),
		append([]string{"GOFLAGS=" + goFlags, "GOWORK=off", "CGO_ENABLED=0"}, extra...)...)
}
