package testcluster

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
)

// definitions are where an operator's module has the CRDs of its jobs.
type definitions struct {
	// component is the folder of test/localcluster/components whose module pins the
	// operator's version.
	component, module string
	files             []string
}

// operatorCRDs has an entry for each operator, by localcluster's name for it.
// training-operator's MPIJob and that of mpi-operator are one CRD with different
// versions: delete the one before installing the other.
var operatorCRDs = map[string]definitions{
	"training-operator": {"trainingoperator", "github.com/kubeflow/training-operator", []string{
		"manifests/base/crds/kubeflow.org_tfjobs.yaml",
		"manifests/base/crds/kubeflow.org_pytorchjobs.yaml",
		"manifests/base/crds/kubeflow.org_mpijobs.yaml",
	}},
	"mpi-operator": {"mpioperator", "github.com/kubeflow/mpi-operator", []string{
		"manifests/base/kubeflow.org_mpijobs.yaml",
	}},
	"spark-operator": {"sparkoperator", "github.com/kubeflow/spark-operator/v2", []string{
		"config/crd/bases/sparkoperator.k8s.io_sparkapplications.yaml",
	}},
	"kuberay": {"kuberay", "github.com/ray-project/kuberay/ray-operator", []string{
		"config/crd/bases/ray.io_rayclusters.yaml",
		"config/crd/bases/ray.io_rayjobs.yaml",
	}},
	"jobset": {"jobset", "sigs.k8s.io/jobset", []string{
		"config/components/crd/bases/jobset.x-k8s.io_jobsets.yaml",
	}},
	"argo-workflows": {"argoworkflows", "github.com/argoproj/argo-workflows/v3", []string{
		"manifests/base/crds/minimal/argoproj.io_workflows.yaml",
	}},
}

// InstallCRDs installs the CRDs of operators that do not run, by localcluster's
// names of them. When it returns they are served, and the policies of kube-queue,
// where installed, act on them.
func (c *Cluster) InstallCRDs(ctx context.Context, operators ...string) error {
	ctx, cancel := context.WithTimeoutCause(ctx, installTimeout, fmt.Errorf("not installed within %v", installTimeout))
	defer cancel()
	var files []string
	for _, operator := range operators {
		module, err := c.OperatorModule(ctx, operator)
		if err != nil {
			return err
		}
		for _, file := range operatorCRDs[operator].files {
			files = append(files, "--filename="+filepath.Join(module.Dir, file))
		}
	}
	if len(files) == 0 {
		return nil
	}
	if _, err := c.Kubectl(ctx, append([]string{"apply", "--server-side"}, files...)...); err != nil {
		return err
	}
	if err := c.waitUntilServed(ctx, files); err != nil {
		return err
	}
	return c.WaitForPolicies(ctx)
}

// waitUntilServed waits until the API server lists them, so that clients find them.
func (c *Cluster) waitUntilServed(ctx context.Context, files []string) error {
	for _, file := range files {
		out, err := c.Kubectl(ctx, "get", file, "--output=json")
		if err != nil {
			return err
		}
		var crd struct {
			Spec struct {
				Group    string
				Names    struct{ Plural string }
				Versions []struct {
					Name   string
					Served bool
				}
			}
		}
		if err := json.Unmarshal([]byte(out), &crd); err != nil {
			return fmt.Errorf("the CRD of %s: %w", file, err)
		}
		for _, version := range crd.Spec.Versions {
			if !version.Served {
				continue
			}
			resource := schema.GroupVersionResource{Group: crd.Spec.Group, Version: version.Name, Resource: crd.Spec.Names.Plural}
			if err := wait.PollUntilContextCancel(ctx, 50*time.Millisecond, true, func(context.Context) (bool, error) {
				return c.serves(resource)
			}); err != nil {
				return fmt.Errorf("%s is not served: %w", resource, err)
			}
		}
	}
	return nil
}

// Module is a Go module, and where the go command keeps it.
type Module struct{ Path, Version, Dir string }

// OperatorModule is the module that an operator is built from, downloaded if need be.
func (c *Cluster) OperatorModule(ctx context.Context, operator string) (Module, error) {
	crds, known := operatorCRDs[operator]
	if !known {
		return Module{}, fmt.Errorf("operator %q is not known: the known ones are %s",
			operator, strings.Join(slices.Sorted(maps.Keys(operatorCRDs)), ", "))
	}
	cmd := goCommand(ctx, "mod", "download", "-json", crds.module)
	cmd.Dir = filepath.Join(c.Repository, "test", "localcluster", "components", crds.component)
	out, err := cmd.Output()
	var module struct {
		Module
		Error string
	}
	if parseErr := json.Unmarshal(out, &module); err == nil {
		err = parseErr
	}
	if err != nil {
		return Module{}, fmt.Errorf("download module %s in %s: %w: %s", crds.module, cmd.Dir, err, module.Error)
	}
	return module.Module, nil
}
