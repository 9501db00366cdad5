// Figures prints what the operator's own code computes for applications and their pods. It reads one question per line
// and answers each with a line. It is built inside a copy of the operator's module, because that code is internal.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubeflow/spark-operator/v2/api/v1beta2"
	"github.com/kubeflow/spark-operator/v2/internal/scheduler/yunikorn/resourceusage"
	"github.com/kubeflow/spark-operator/v2/internal/webhook"
	"github.com/kubeflow/spark-operator/v2/pkg/util"
)

type question struct {
	App *v1beta2.SparkApplication `json:"app"`
	// Pod, if given, is a pod for the webhook to change.
	Pod *corev1.Pod `json:"pod"`
}

type answer struct {
	Driver    map[string]string `json:"driver"`
	Executor  map[string]string `json:"executor"`
	Executors int32             `json:"executors"`
	Pod       *corev1.Pod       `json:"pod"`
	Error     string            `json:"error"`
}

func main() {
	in, out := bufio.NewReader(os.Stdin), json.NewEncoder(os.Stdout)
	for {
		line, err := in.ReadBytes('\n')
		if err != nil {
			return
		}
		said, err := answerTo(line)
		if err != nil {
			said = answer{Error: err.Error()}
		}
		if err := out.Encode(said); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
}

func answerTo(line []byte) (answer, error) {
	var asked question
	if err := json.Unmarshal(line, &asked); err != nil {
		return answer{}, err
	}
	if asked.Pod != nil {
		err := webhook.Mutate(asked.Pod, asked.App)
		return answer{Pod: asked.Pod}, err
	}
	driver, err := resourceusage.DriverPodRequests(asked.App)
	if err != nil {
		return answer{}, err
	}
	executor, err := resourceusage.ExecutorPodRequests(asked.App)
	return answer{Driver: driver, Executor: executor, Executors: util.GetInitialExecutorNumber(asked.App)}, err
}
