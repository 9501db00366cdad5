package clustertest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"kube-queue.dev/kube-queue/extensions/framework"
	"kube-queue.dev/kube-queue/extensions/registry"
	"kube-queue.dev/kube-queue/test/built"
)

// Operator is an operator of localcluster that runs jobs of a queued kind.
type Operator struct {
	Name string
	// Definitions are the CRDs of these kinds.
	Definitions []Definition
	// folder is the module that it is built from.
	folder string
}

// Component is the name of the part of the local cluster that the operator is built from.
func (o Operator) Component() string { return filepath.Base(o.folder) }

// BuiltWith returns the version of a module that the operator is built with.
func (o Operator) BuiltWith(ctx context.Context, module string) (string, error) {
	cmd := built.Go(ctx, "list", "-m", "-f", "{{with .Replace}}{{.Version}}{{else}}{{.Version}}{{end}}", module)
	cmd.Dir = o.folder
	out, err := output(cmd)
	return strings.TrimSpace(string(out)), err
}

// Definition is a CRD.
type Definition struct {
	File string
	schema.GroupKind
	Plural string
	// Served are the served versions.
	Served []string
}

// Runs reports whether the operator defines the kind in its preferred version.
func (o Operator) Runs(kind framework.Kind) bool {
	return slices.ContainsFunc(o.Definitions, func(d Definition) bool { return d.defines(kind) && slices.Contains(d.Served, kind.Version) })
}

func (d Definition) defines(kind framework.Kind) bool {
	return d.Group == kind.Group && d.Plural == kind.Resource
}

// Operators returns all operators that run jobs of a queued kind.
func Operators(ctx context.Context) ([]Operator, error) {
	root, err := built.Root(ctx)
	if err != nil {
		return nil, err
	}
	known, err := listed(ctx)
	if err != nil {
		return nil, err
	}
	var all []Operator
	for _, o := range known {
		definitions, err := o.definitions(ctx, root)
		if err != nil {
			return nil, err
		}
		if len(definitions) > 0 {
			all = append(all, Operator{o.Name, definitions, o.folder(root)})
		}
	}
	return all, nil
}

// SideBySide separates operators that can run together in one cluster from those that replace another. All CRDs of
// the latter are defined by another operator too: training-operator, for example, also defines MPIJob.
func SideBySide(operators []Operator) (together, instead []Operator) {
	for _, o := range operators {
		if slices.ContainsFunc(operators, func(other Operator) bool { return o.isPartOf(other) }) {
			instead = append(instead, o)
		} else {
			together = append(together, o)
		}
	}
	return together, instead
}

func (o Operator) isPartOf(other Operator) bool {
	return len(o.Definitions) < len(other.Definitions) && !slices.ContainsFunc(o.Definitions, func(d Definition) bool {
		return !slices.ContainsFunc(other.Definitions, func(e Definition) bool { return e.GroupKind == d.GroupKind })
	})
}

// Names returns the names of operators.
func Names(operators []Operator) []string {
	var names []string
	for _, o := range operators {
		names = append(names, o.Name)
	}
	return names
}

// operator is an entry in the output of "localcluster operators".
type operator struct {
	Name string
	// Component is the folder of test/localcluster/components whose module pins the operator's
	// version.
	Component string
	// Module is the module that contains the CRDs.
	Module string
	CRDs   []string
}

// listed returns the output of "localcluster operators".
func listed(ctx context.Context) ([]operator, error) {
	out, err := localcluster(ctx, "operators")
	if err != nil {
		return nil, err
	}
	var all []operator
	if err := json.Unmarshal(out, &all); err != nil {
		return nil, fmt.Errorf("localcluster operators printed %q: %w", out, err)
	}
	return all, nil
}

// output runs a command. The error includes the command's stderr.
func output(cmd *exec.Cmd) ([]byte, error) {
	out, err := cmd.Output()
	if exit, is := errors.AsType[*exec.ExitError](err); is {
		err = fmt.Errorf("%w\n%s", err, exit.Stderr)
	}
	if err != nil {
		return nil, fmt.Errorf("%v: %w", cmd.Args, err)
	}
	return out, nil
}

// Module is a Go module with its folder in the module cache.
type Module struct{ Path, Version, Dir string }

// module returns the module that the operator is built from. It downloads the module if needed.
func (o operator) module(ctx context.Context, root string) (Module, error) {
	return required(ctx, o.folder(root), o.Module)
}

// folder returns the folder of the module that the operator is built from.
func (o operator) folder(root string) string {
	return filepath.Join(root, "test", "localcluster", "components", o.Component)
}

// required returns a module in the version that the module in the folder requires. It downloads the
// module if needed.
func required(ctx context.Context, dir, path string) (Module, error) {
	cmd := built.Go(ctx, "mod", "download", "-json", path)
	cmd.Dir = dir
	out, err := cmd.Output()
	var module struct {
		Module
		Error string
	}
	if parseErr := json.Unmarshal(out, &module); err == nil {
		err = parseErr
	}
	if err != nil {
		return Module{}, fmt.Errorf("download module %s in %s: %w: %s", path, cmd.Dir, err, module.Error)
	}
	return module.Module, nil
}

// definitions returns the operator's CRDs of queued kinds.
func (o operator) definitions(ctx context.Context, root string) ([]Definition, error) {
	module, err := o.module(ctx, root)
	if err != nil {
		return nil, err
	}
	adapters := registry.All()
	var all []Definition
	for _, file := range o.CRDs {
		definition, err := readDefinition(filepath.Join(module.Dir, filepath.FromSlash(file)))
		if err != nil {
			return nil, fmt.Errorf("the CRDs of %s: %w", o.Name, err)
		}
		if slices.ContainsFunc(adapters, func(a framework.Adapter) bool { return definition.defines(a.Kind()) }) {
			all = append(all, definition)
		}
	}
	return all, nil
}

func readDefinition(file string) (Definition, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return Definition{}, err
	}
	var crd struct {
		Spec struct {
			Group    string
			Names    struct{ Kind, Plural string }
			Versions []struct {
				Name   string
				Served bool
			}
		}
	}
	if err := yaml.Unmarshal(text, &crd); err != nil {
		return Definition{}, fmt.Errorf("%s: %w", file, err)
	}
	if crd.Spec.Names.Plural == "" {
		return Definition{}, fmt.Errorf("%s contains no CRD", file)
	}
	d := Definition{File: file, GroupKind: schema.GroupKind{Group: crd.Spec.Group, Kind: crd.Spec.Names.Kind}, Plural: crd.Spec.Names.Plural}
	for _, version := range crd.Spec.Versions {
		if version.Served {
			d.Served = append(d.Served, version.Name)
		}
	}
	return d, nil
}
