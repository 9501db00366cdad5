// Package version knows the version of the programs. It is apart from package program
// so that a tool that talks to no cluster can tell its version without linking the
// clients.
package version

import "runtime/debug"

// linked is set by the linker: -X kube-queue.dev/kube-queue/pkg/program/version.linked=v1.2.3.
var linked string

// String is the version as linked, else that of the module, else "devel".
func String() string {
	if linked != "" {
		return linked
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" && info.Main.Version != "(devel)" {
		return info.Main.Version
	}
	return "devel"
}
