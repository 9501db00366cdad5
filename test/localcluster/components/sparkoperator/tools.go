//go:build tools

// Package sparkoperator pins the unmodified Kubeflow spark-operator, which runs
// SparkApplication.
package sparkoperator

import _ "github.com/kubeflow/spark-operator/v2/cmd/operator"
