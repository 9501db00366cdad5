// Package webhook is part of the operator. The tests put this file into a copy of it.
package webhook

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/kubeflow/spark-operator/v2/api/v1beta2"
)

// Mutate is what the webhook does to a pod of an application.
func Mutate(pod *corev1.Pod, app *v1beta2.SparkApplication) error { return mutateSparkPod(pod, app) }
