//go:build tools

// Package trainer pins the unmodified controller of Kubeflow Trainer v2.
package trainer

import _ "github.com/kubeflow/trainer/v2/cmd/trainer-controller-manager"
