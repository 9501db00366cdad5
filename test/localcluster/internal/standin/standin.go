// Package standin plays what an operator needs beside itself and what needs real
// containers: the program that submits Spark applications, the dashboard of a Ray
// cluster, the executor of Argo. Each stand-in is a command of localcluster that
// is hidden from people, so that a cluster is one binary.
package standin

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Command is the first argument of localcluster that requests a stand-in; its
// name and its own arguments follow.
const Command = "stand-in"

// Annotations that say of a pod how long it runs and what it returns. On a RayJob
// they say it of its entrypoint.
const (
	runTimeAnnotation  = "localcluster.kube-queue.dev/run-time"
	exitCodeAnnotation = "localcluster.kube-queue.dev/exit-code"
)

// programs are the stand-ins by name; each has a file of its own, which registers
// it. One that serves ends with its context.
var programs = map[string]func(ctx context.Context, args []string) error{}

// Run plays a stand-in.
func Run(ctx context.Context, name string, args []string) error {
	program, known := programs[name]
	if !known {
		return fmt.Errorf("there is no stand-in %q, only %s", name, strings.Join(slices.Sorted(maps.Keys(programs)), ", "))
	}
	if err := program(ctx, args); err != nil {
		return fmt.Errorf("stand-in %s: %w", name, err)
	}
	return nil
}
