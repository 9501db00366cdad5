//go:build tools

// Package trainingoperator pins the unmodified Kubeflow training-operator,
// which runs TFJob and PyTorchJob.
package trainingoperator

import _ "github.com/kubeflow/training-operator/cmd/training-operator.v1"
