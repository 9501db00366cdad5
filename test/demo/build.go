package main

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"

	"kube-queue.dev/kube-queue/test/clustertest"
)

// packages are the numbers of Go packages of the components of the cluster, which determine how
// long a build takes. A component that is missing here has no estimate.
var packages = map[string]int{
	"controlplane": 2700, "kwok": 970, "argoworkflows": 1370, "jobset": 1090, "kuberay": 890, "mpioperator": 1330,
	"sparkoperator": 920, "trainer": 890, "trainingoperator": 860,
}

// packagesPerMinute is what one core compiles: all components take half an hour on 2 cores.
const packagesPerMinute = 185

// estimate says how long a component takes to build on this number of cores.
func estimate(component string, cores int) string {
	count, known := packages[component]
	if !known {
		return "some minutes"
	}
	perMinute := packagesPerMinute * max(1, cores)
	switch minutes := (count + perMinute/2) / perMinute; minutes {
	case 0:
		return "less than a minute"
	case 1:
		return "about a minute"
	default:
		return fmt.Sprintf("about %d minutes", minutes)
	}
}

// componentsOf are the components of a cluster with these operators, in the order of their builds.
func componentsOf(operators []clustertest.Operator) []string {
	components := []string{"controlplane", "kwok"}
	for _, operator := range operators {
		if component := operator.Component(); !slices.Contains(components, component) {
			components = append(components, component)
		}
	}
	return components
}

// build builds the components that are not in the cache, one after another, so that an interrupted
// run keeps those that are complete.
func (e *environment) build(ctx context.Context, components []string) error {
	missing, err := e.missing(ctx, components)
	if err != nil || len(missing) == 0 {
		return err
	}
	say(fmt.Sprintf("Building %d of %d programs of the cluster, which are built once", len(missing), len(components)))
	fmt.Print(plan(missing, runtime.NumCPU()))
	for i, component := range missing {
		fmt.Printf("[%d of %d] %s, %s\n", i+1, len(missing), component, estimate(component, runtime.NumCPU()))
		cmd := e.localcluster(ctx, "build", "--components", component)
		cmd.Stderr = os.Stdout
		if err := cmd.Run(); err != nil {
			return fmt.Errorf("building %s: %w", component, err)
		}
	}
	return nil
}

// plan lists how long each component takes.
func plan(missing []string, cores int) string {
	var b strings.Builder
	for _, component := range missing {
		fmt.Fprintf(&b, "  %-17s %s\n", component, estimate(component, cores))
	}
	fmt.Fprintf(&b, "On this machine with %d cores; a slow network takes longer, because modules are downloaded.\n", cores)
	b.WriteString("Ctrl-C stops the build. What is built stays, and the next run goes on with the others.\n")
	return b.String()
}

// missing returns the components that are not built.
func (e *environment) missing(ctx context.Context, components []string) ([]string, error) {
	out, err := e.localcluster(ctx, "build", "--missing", "--components", strings.Join(components, ",")).Output()
	if err != nil {
		return nil, fmt.Errorf("listing the programs that are not built: %w", err)
	}
	return strings.Fields(string(out)), nil
}
