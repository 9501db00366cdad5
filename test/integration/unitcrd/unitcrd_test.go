// Package unitcrd tests the programs in a cluster where the CRD of QueueUnits is missing, or
// belongs to another system.
package unitcrd

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"kube-queue.dev/kube-queue/test/clustertest"
	"kube-queue.dev/kube-queue/test/harness"
)

const patience = 90 * time.Second

// foreign is a CRD with the same name and version, and the fields of another system.
const foreign = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: queueunits.scheduling.x-k8s.io
spec:
  group: scheduling.x-k8s.io
  names: {kind: QueueUnit, listKind: QueueUnitList, plural: queueunits, singular: queueunit}
  scope: Namespaced
  versions:
  - name: v1alpha1
    served: true
    storage: true
    subresources: {status: {}}
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              consumerRef: {type: object, x-kubernetes-preserve-unknown-fields: true}
              queue: {type: string}
          status:
            type: object
            properties:
              phase: {type: string}
`

func TestTheProgramsWaitForTheirCRDAndRefuseAnotherWithItsName(t *testing.T) {
	suite := harness.ForTest(t, clustertest.Options{Nodes: 1})
	crd := filepath.Join(suite.Repository, "deploy", "crds", "scheduling.x-k8s.io_queueunits.yaml")
	kubectl := func(args ...string) {
		t.Helper()
		out, err := suite.Kubectl(t.Context(), args...)
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	programs := []*harness.Program{suite.Program(t, harness.Controller), suite.Program(t, harness.Extensions)}

	// Without the CRD, the programs wait and log this.
	kubectl("delete", "crd", "queueunits.scheduling.x-k8s.io", "--wait")
	for _, program := range programs {
		program.Launch()
		logs(t, program, "Waiting for the CRD of QueueUnits")
	}

	// With the CRD of another system, they exit, and log what it lacks and what to do.
	apply := func(manifest string) {
		t.Helper()
		if out, err := suite.KubectlWith(t.Context(), manifest, "apply", "--server-side", "-f", "-"); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	apply(foreign)
	for _, program := range programs {
		select {
		case <-program.Ended():
		case <-time.After(patience):
			t.Fatalf("%s runs on units of another system", program.Name)
		}
		if exit, is := program.Err().(*exec.ExitError); !is || exit.ExitCode() != 1 {
			t.Errorf("%s ended with %v", program.Name, program.Err())
		}
		logs(t, program, "spec.podSets, spec.resource", "kubectl delete crd queueunits.scheduling.x-k8s.io")
	}

	// With the right CRD, they run.
	kubectl("delete", "crd", "queueunits.scheduling.x-k8s.io", "--wait")
	for _, program := range programs {
		program.Launch()
	}
	kubectl("apply", "--server-side", "-f", crd)
	for _, program := range programs {
		program.WaitReady()
	}
}

// logs waits until the program has logged each of the texts.
func logs(t *testing.T, program *harness.Program, texts ...string) {
	t.Helper()
	for _, text := range texts {
		harness.Eventually(t, patience, program.Name+" logs "+text, func() (bool, string) {
			content, err := os.ReadFile(program.Log.Name())
			if err != nil {
				return false, err.Error()
			}
			return strings.Contains(string(content), text), "see " + program.Log.Name()
		})
	}
}
