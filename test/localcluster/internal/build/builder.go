package build

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"kube-queue.dev/kube-queue/test/localcluster/internal/process"
)

// interruptGrace is how long a go command may take to clean up after itself.
const interruptGrace = 5 * time.Second

// Builder builds components into a cache.
type Builder struct {
	// Source is the folder with components/.
	Source string
	// Cache is the folder from CacheDir.
	Cache string
	// Out receives the progress.
	Out     io.Writer
	Starter *process.Starter
}

// dirs returns the folder of each component in the cache.
func (b *Builder) dirs(ctx context.Context, components []Component) ([]string, error) {
	dirs := make([]string, len(components))
	for i, c := range components {
		source := b.source(c)
		platform, err := platform(ctx, c, source)
		if err != nil {
			return nil, fmt.Errorf("component %s: %w", c.Name, err)
		}
		key, err := key(c, source, platform)
		if err != nil {
			return nil, err
		}
		dirs[i] = filepath.Join(b.Cache, c.Name+"-"+key)
	}
	return dirs, nil
}

// Ensure returns the folder of each component, in order. It builds components that are not in the
// cache.
func (b *Builder) Ensure(ctx context.Context, components []Component) ([]string, error) {
	dirs, err := b.dirs(ctx, components)
	if err != nil {
		return nil, err
	}
	if !slices.ContainsFunc(dirs, func(dir string) bool { return !exists(dir) }) {
		return dirs, nil
	}

	release, err := lock(ctx, b.Cache, func() { fmt.Fprintln(b.Out, "waiting for another build to finish ...") })
	if err != nil {
		return nil, err
	}
	defer release()
	for i, c := range components {
		if exists(dirs[i]) {
			continue
		}
		if err := b.build(ctx, c, dirs[i]); err != nil {
			return nil, fmt.Errorf("build %s: %w", c.Name, err)
		}
	}
	return dirs, nil
}

// build builds a component in a staging folder and renames the folder into place. The caller holds
// the lock, so existing staging folders are leftovers.
func (b *Builder) build(ctx context.Context, c Component, dir string) error {
	staging := filepath.Join(b.Cache, "building-"+c.Name)
	if err := os.RemoveAll(staging); err != nil {
		return err
	}
	defer os.RemoveAll(staging)
	scratch := filepath.Join(staging, "scratch")
	if err := os.MkdirAll(scratch, 0o755); err != nil {
		return err
	}

	progress := newProgress(c.Name, b.Out)
	defer progress.stop()
	run := goCommand{dir: b.source(c), flags: c.goFlags(), scratch: scratch, starter: b.Starter, progress: progress}

	// With -e a missing package is reported by the build.
	listed, err := run.output(ctx, "list", "-e", "-deps", "-f", "{{.ImportPath}}\t{{.StaleReason}}", c.Package)
	if err != nil {
		return err
	}
	progress.compiling(missingPackages(string(listed)))
	if _, err := run.output(ctx, "build", "-v", "-ldflags", c.LDFlags, "-o", filepath.Join(staging, c.Binary), c.Package); err != nil {
		return err
	}
	for _, name := range c.Links {
		if err := os.Symlink(c.Binary, filepath.Join(staging, name)); err != nil {
			return err
		}
	}
	for _, files := range c.Files {
		if err := copyModuleFiles(ctx, run, files, staging); err != nil {
			return err
		}
	}
	if err := os.RemoveAll(scratch); err != nil {
		return err
	}
	if err := os.Rename(staging, dir); err != nil {
		return err
	}
	fmt.Fprintf(b.Out, "built %s in %v\n", c.Name, time.Since(progress.started).Truncate(100*time.Millisecond))
	return nil
}

func copyModuleFiles(ctx context.Context, run goCommand, files ModuleFiles, staging string) error {
	out, err := run.output(ctx, "list", "-m", "-f", "{{.Dir}}", files.Module)
	if err != nil {
		return err
	}
	module := strings.TrimSpace(string(out))
	into := filepath.Join(staging, files.Into)
	if err := os.MkdirAll(into, 0o755); err != nil {
		return err
	}
	for _, name := range files.Paths {
		content, err := os.ReadFile(filepath.Join(module, filepath.FromSlash(name)))
		if err == nil {
			err = os.WriteFile(filepath.Join(into, path.Base(name)), content, 0o644)
		}
		if err != nil {
			return fmt.Errorf("module %s: %w", files.Module, err)
		}
	}
	return nil
}

func (b *Builder) source(c Component) string {
	return filepath.Join(b.Source, "components", c.Name)
}

// goCommand runs the go command in one module.
type goCommand struct {
	dir, flags string
	scratch    string
	starter    *process.Starter
	progress   *progress
}

// output runs the command and returns its standard output. Standard error is used for the progress
// and, after a failure, for the error.
func (g goCommand) output(ctx context.Context, args ...string) ([]byte, error) {
	cmd := exec.Command("go", args...)
	// Temporary files are in the staging folder, so that they are always removed.
	cmd.Dir, cmd.Env = g.dir, environment(g.flags, "GOTMPDIR="+g.scratch)
	var stdout bytes.Buffer
	said, stderr := io.Pipe()
	cmd.Stdout, cmd.Stderr = &stdout, stderr
	var reader sync.WaitGroup
	reader.Go(func() { g.progress.read(said) })
	p, err := g.starter.StartCommand("go "+args[0], cmd)
	if err == nil {
		select {
		case <-p.Done():
		case <-ctx.Done():
			p.End(syscall.SIGINT, interruptGrace)
		}
	}
	stderr.Close()
	reader.Wait()
	switch {
	case err != nil:
		return nil, err
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case p.Err() != nil:
		return nil, errors.New(strings.TrimSpace("go " + args[0] + ": " + p.Exit() + "\n" + g.progress.output()))
	}
	return stdout.Bytes(), nil
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
