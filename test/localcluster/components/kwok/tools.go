//go:build tools

// Package kwok pins the kwok controller, which simulates the kubelets of the nodes. It is a separate module because
// it needs older versions of libraries than the control plane.
package kwok

import _ "sigs.k8s.io/kwok/cmd/kwok"
