// Package standin simulates programs that operators need and that would run in real containers:
// spark-submit, the Spark driver, the dashboard of a Ray cluster, and the executor of Argo. Each
// stand-in is a hidden command of localcluster, so that a cluster needs only one binary.
package standin

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Command is the first argument of localcluster that starts a stand-in. The name of the stand-in
// and its arguments follow.
const Command = "stand-in"

// Annotations that set the run time and the exit code of a pod. On a RayJob they apply to its
// entrypoint.
const (
	runTimeAnnotation  = "localcluster.kube-queue.dev/run-time"
	exitCodeAnnotation = "localcluster.kube-queue.dev/exit-code"
)

// programs has the stand-ins by name. Each has its own file, which registers it. Servers end with
// their context.
var programs = map[string]func(ctx context.Context, args []string) error{}

// Run runs a stand-in.
func Run(ctx context.Context, name string, args []string) error {
	program, known := programs[name]
	if !known {
		return fmt.Errorf("unknown stand-in %q; known stand-ins: %s", name, strings.Join(slices.Sorted(maps.Keys(programs)), ", "))
	}
	if err := program(ctx, args); err != nil {
		return fmt.Errorf("stand-in %s: %w", name, err)
	}
	return nil
}
