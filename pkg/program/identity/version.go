// Package identity is what a program says of itself: its version, and the names by which
// the API server and other processes know it. It is apart from package program so that a
// tool that talks to no cluster can tell its version without linking the clients.
package identity

import "runtime/debug"

// linked is set by the linker: -X kube-queue.dev/kube-queue/pkg/program/identity.linked=v1.2.3.
var linked string

// Version of the program as linked, else that of the module, else "devel".
func Version() string {
	if linked != "" {
		return linked
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" && info.Main.Version != "(devel)" {
		return info.Main.Version
	}
	return "devel"
}
