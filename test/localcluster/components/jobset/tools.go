//go:build tools

// Package jobset pins the unmodified JobSet controller.
package jobset

import _ "sigs.k8s.io/jobset"
