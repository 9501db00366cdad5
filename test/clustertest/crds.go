package clustertest

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
)

// InstallCRDs installs the CRDs of the queued kinds of operators that are not running. The names of the operators are
// those of localcluster. When it returns, the CRDs are served, and installed policies of kube-queue apply to them.
//
// If two operators define the same kind, delete the CRD of one before installing that of the other.
func (c *Cluster) InstallCRDs(ctx context.Context, operators ...string) error {
	ctx, cancel := context.WithTimeoutCause(ctx, installTimeout, fmt.Errorf("not installed within %v", installTimeout))
	defer cancel()
	if len(operators) == 0 {
		return nil
	}
	known, err := listed(ctx)
	if err != nil {
		return err
	}
	var definitions []Definition
	for _, name := range operators {
		operator, err := named(known, name)
		if err != nil {
			return err
		}
		own, err := operator.definitions(ctx, c.Repository)
		if err != nil {
			return err
		}
		definitions = append(definitions, own...)
	}
	if len(definitions) == 0 {
		return nil
	}
	if err := c.apply(ctx, definitions); err != nil {
		return err
	}
	return c.WaitForPolicies(ctx)
}

// InstallModuleCRDs installs CRDs of a module that go.mod requires, by their paths in the module. When
// it returns, the CRDs are served.
func (c *Cluster) InstallModuleCRDs(ctx context.Context, module string, files ...string) error {
	ctx, cancel := context.WithTimeoutCause(ctx, installTimeout, fmt.Errorf("not installed within %v", installTimeout))
	defer cancel()
	source, err := required(ctx, c.Repository, module)
	if err != nil {
		return err
	}
	var definitions []Definition
	for _, file := range files {
		definition, err := readDefinition(filepath.Join(source.Dir, filepath.FromSlash(file)))
		if err != nil {
			return fmt.Errorf("the CRDs of %s: %w", module, err)
		}
		definitions = append(definitions, definition)
	}
	return c.apply(ctx, definitions)
}

// apply applies CRDs and waits until they are served.
func (c *Cluster) apply(ctx context.Context, definitions []Definition) error {
	args := []string{"apply", "--server-side"}
	for _, d := range definitions {
		args = append(args, "--filename="+d.File)
	}
	if _, err := c.Kubectl(ctx, args...); err != nil {
		return err
	}
	return c.waitUntilServed(ctx, definitions)
}

// waitUntilServed waits until discovery lists the resources, so that clients find them.
func (c *Cluster) waitUntilServed(ctx context.Context, definitions []Definition) error {
	for _, d := range definitions {
		for _, version := range d.Served {
			resource := schema.GroupVersionResource{Group: d.Group, Version: version, Resource: d.Plural}
			if err := wait.PollUntilContextCancel(ctx, 50*time.Millisecond, true, func(context.Context) (bool, error) {
				return c.serves(resource)
			}); err != nil {
				return fmt.Errorf("%s is not served: %w", resource, err)
			}
		}
	}
	return nil
}

// OperatorModule returns the module that an operator is built from. It downloads the module if
// needed.
func (c *Cluster) OperatorModule(ctx context.Context, name string) (Module, error) {
	known, err := listed(ctx)
	if err != nil {
		return Module{}, err
	}
	operator, err := named(known, name)
	if err != nil {
		return Module{}, err
	}
	return operator.module(ctx, c.Repository)
}

// named returns the operator with this name in localcluster.
func named(known []operator, name string) (operator, error) {
	var names []string
	for _, o := range known {
		if o.Name == name {
			return o, nil
		}
		names = append(names, o.Name)
	}
	return operator{}, fmt.Errorf("unknown operator %q; known operators: %s", name, strings.Join(names, ", "))
}
