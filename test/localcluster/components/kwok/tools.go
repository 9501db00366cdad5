//go:build tools

// Package kwok pins the kwok controller, which plays the kubelets of the
// simulated nodes. It is a module of its own because it needs older versions
// of libraries that the control plane needs newer.
package kwok

import _ "sigs.k8s.io/kwok/cmd/kwok"
