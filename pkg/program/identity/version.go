// Package identity provides the version of a program, its user agent and the identity of its
// process. It is separate from package program so that a tool that uses no cluster can
// report its version without linking the clients.
package identity

import "runtime/debug"

// linked is set by the linker: -X kube-queue.dev/kube-queue/pkg/program/identity.linked=v1.2.3.
var linked string

// Version returns the version set by the linker, else the version of the module, else "devel".
func Version() string {
	if linked != "" {
		return linked
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" && info.Main.Version != "(devel)" {
		return info.Main.Version
	}
	return "devel"
}
