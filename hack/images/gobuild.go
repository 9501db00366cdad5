package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// carried are the user's settings for the source and the cache of modules. All other settings
// could change the output and are dropped.
var carried = []string{"GOPROXY", "GOSUMDB", "GONOSUMDB", "GONOPROXY", "GOPRIVATE", "GOINSECURE", "GOAUTH", "GOVCS",
	"GOMODCACHE", "GOCACHE", "GOTMPDIR", "GOTOOLCHAIN"}

// builder runs the go command with settings that do not depend on the machine.
type builder struct {
	source string
	env    []string
	module string
	log    io.Writer
}

func newBuilder(ctx context.Context, source string, log io.Writer) (*builder, error) {
	b := &builder{source: source, log: log}
	out, err := b.goCommand(ctx, nil, append([]string{"env", "-json"}, carried...)...)
	if err != nil {
		return nil, err
	}
	var settings map[string]string
	if err := json.Unmarshal(out, &settings); err != nil {
		return nil, fmt.Errorf("parsing the output of go env: %w", err)
	}
	for _, setting := range os.Environ() {
		if !strings.HasPrefix(setting, "GO") && !strings.HasPrefix(setting, "CGO_") {
			b.env = append(b.env, setting)
		}
	}
	for _, name := range carried {
		b.env = append(b.env, name+"="+settings[name])
	}
	b.env = append(b.env, "GOENV=off", "GOWORK=off", "CGO_ENABLED=0", "GOAMD64=v1", "GOARM64=v8.0")
	module, err := b.goCommand(ctx, b.env, "list", "-m")
	if err != nil {
		return nil, err
	}
	b.module = strings.TrimSpace(string(module))
	return b, nil
}

// build writes the programs for one platform into the folder to.
func (b *builder) build(ctx context.Context, to string, on platform, opts *options) error {
	what := fmt.Sprintf("%s for %s", strings.Join(opts.programs, " and "), on)
	return b.progress("building "+what, func() error {
		args := []string{"build", "-trimpath", "-buildvcs=false", "-mod=readonly",
			"-ldflags", "-s -w -buildid= -X " + b.module + "/pkg/program/identity.linked=" + opts.version,
			"-o", to + string(filepath.Separator)}
		if _, err := b.goCommand(ctx, b.platformEnv(on), append(args, packages(opts.programs)...)...); err != nil {
			return fmt.Errorf("building %s: %w", what, err)
		}
		return nil
	})
}

// moduleFolders returns the source folders of the modules that a program is built from.
func (b *builder) moduleFolders(ctx context.Context, on platform, programs []string) (map[string]string, error) {
	args := []string{"list", "-deps", "-f", "{{with .Module}}{{.Path}}\t{{.Dir}}{{end}}"}
	out, err := b.goCommand(ctx, b.platformEnv(on), append(args, packages(programs)...)...)
	if err != nil {
		return nil, fmt.Errorf("listing the modules of %s: %w", on, err)
	}
	folders := map[string]string{}
	for line := range strings.Lines(string(out)) {
		if path, folder, ok := strings.Cut(strings.TrimSpace(line), "\t"); ok {
			folders[path] = folder
		}
	}
	return folders, nil
}

func (b *builder) platformEnv(on platform) []string {
	return append(b.env[:len(b.env):len(b.env)], "GOOS="+on.os, "GOARCH="+on.arch)
}

func packages(programs []string) []string {
	var out []string
	for _, program := range programs {
		out = append(out, "./cmd/"+program)
	}
	return out
}

func (b *builder) goCommand(ctx context.Context, env []string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir, cmd.Env = b.source, env
	// On an interrupt, go removes its temporary files; when killed, it would leave them.
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 10 * time.Second
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go %s in %s: %w\n%s", args[0], b.source, err, strings.TrimSpace(errs.String()))
	}
	return out, nil
}

// progress logs the start, the progress and the duration of a slow step.
func (b *builder) progress(what string, do func() error) error {
	fmt.Fprintf(b.log, "images: %s\n", what)
	started := time.Now()
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		ticker := time.NewTicker(15 * time.Second)
		defer ticker.Stop()
		for {
			select {
			case <-done:
				return
			case <-ticker.C:
				fmt.Fprintf(b.log, "images: still %s (%.0f s)\n", what, time.Since(started).Seconds())
			}
		}
	}()
	err := do()
	close(done)
	<-ended
	if err == nil {
		fmt.Fprintf(b.log, "images: %s: done (%.0f s)\n", what, time.Since(started).Seconds())
	}
	return err
}
