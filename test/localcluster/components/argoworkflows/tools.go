//go:build tools

// Package argoworkflows pins the unmodified workflow-controller of Argo Workflows.
package argoworkflows

import _ "github.com/argoproj/argo-workflows/v3/cmd/workflow-controller"
