package cli

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"

	"kube-queue.dev/kube-queue/test/localcluster/internal/build"
	"kube-queue.dev/kube-queue/test/localcluster/internal/cluster"
	"kube-queue.dev/kube-queue/test/localcluster/internal/process"
)

// builder returns the builder of the invocation.
func (i *invocation) builder() (*build.Builder, error) {
	cache, err := build.CacheDir()
	if err != nil {
		return nil, err
	}
	source, err := findSource()
	if err != nil {
		return nil, err
	}
	return &build.Builder{Source: source, Cache: cache, Out: i.world.Err, Starter: process.NewStarter()}, nil
}

// findSource returns the folder that contains components/: the source folder of this program, or else a folder in or
// above the current directory.
func findSource() (string, error) {
	// With -trimpath, the name of the file is not a path, so the folder is not found here.
	if _, file, _, known := runtime.Caller(0); known {
		if dir := filepath.Join(filepath.Dir(file), "..", ".."); isSource(dir) {
			return dir, nil
		}
	}
	current, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for dir := current; ; dir = filepath.Dir(dir) {
		for _, candidate := range []string{dir, filepath.Join(dir, "test", "localcluster")} {
			if isSource(candidate) {
				return candidate, nil
			}
		}
		if dir == filepath.Dir(dir) {
			return "", fmt.Errorf("no components/ found in or above %s; run this command in a clone of kube-queue", current)
		}
	}
}

func isSource(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, "components", "controlplane", "go.mod"))
	return err == nil && filepath.IsAbs(dir)
}

func runBuild(ctx context.Context, i *invocation) error {
	components := cluster.AllComponents(i.config.Kubernetes)
	builder, err := i.builder()
	if err != nil {
		return err
	}
	dirs, err := builder.Ensure(ctx, components)
	if err != nil {
		return err
	}
	for n, c := range components {
		fmt.Fprintf(i.world.Out, "%s\t%s\n", c.Name, dirs[n])
	}
	return nil
}

// prepare builds missing programs and locks the data folder.
func (i *invocation) prepare(ctx context.Context) (lock *os.File, err error) {
	builder, err := i.builder()
	if err != nil {
		return nil, err
	}
	config := i.config
	components := config.Components()
	dirs, err := builder.Ensure(ctx, components)
	if err != nil {
		return nil, err
	}
	config.Built = map[string]string{}
	for n, c := range components {
		config.Built[c.Name] = dirs[n]
	}
	if i.fresh {
		if _, err := i.folder.Stop(ctx); err != nil {
			return nil, err
		}
	}
	return i.folder.Prepare(config)
}

// version builds the requested version of the control plane if it is missing.
func (i *invocation) version(ctx context.Context) (cluster.Version, error) {
	version := cluster.Version{Kubernetes: i.config.Kubernetes}
	builder, err := i.builder()
	if err != nil {
		return version, err
	}
	dirs, err := builder.Ensure(ctx, cluster.Config{Kubernetes: version.Kubernetes, OnlyAPI: true}.Components())
	if err != nil {
		return version, err
	}
	version.Built = dirs[0]
	return version, nil
}
