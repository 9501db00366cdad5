package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// carried are the user's settings for the source and the cache of modules. All other Go settings are dropped, because
// they could change the output.
var carried = []string{"GOPROXY", "GOSUMDB", "GONOSUMDB", "GONOPROXY", "GOPRIVATE", "GOINSECURE", "GOAUTH", "GOVCS",
	"GOMODCACHE", "GOCACHE", "GOTMPDIR", "GOTOOLCHAIN"}

// linkedVersion is the variable that the linker sets to the version.
const linkedVersion = "kube-queue.dev/kube-queue/pkg/program/identity.linked"

// built is a program for a platform, with its bill of materials.
type built struct {
	program, platform string
	binary, bom       []byte
}

func (r *release) build(ctx context.Context) ([]built, error) {
	env, err := r.environment(ctx)
	if err != nil {
		return nil, err
	}
	scratch, err := os.MkdirTemp("", "kube-queue-build-")
	if err != nil {
		return nil, fmt.Errorf("creating a build folder: %w", err)
	}
	defer os.RemoveAll(scratch)
	var all []built
	for _, platform := range r.platforms {
		what := fmt.Sprintf("building %s for %s", strings.Join(r.programs, " and "), platform)
		fmt.Fprintf(r.log, "release: %s\n", what)
		system, arch, _ := strings.Cut(platform, "/")
		some, err := r.buildFor(ctx, platform, append(env, "GOOS="+system, "GOARCH="+arch), scratch)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", what, err)
		}
		all = append(all, some...)
	}
	return all, nil
}

// environment returns variables that make the go command independent of the machine.
func (o *options) environment(ctx context.Context) ([]string, error) {
	out, err := o.run(ctx, nil, "go", append([]string{"env", "-json"}, carried...)...)
	if err != nil {
		return nil, err
	}
	var settings map[string]string
	if err := json.Unmarshal(out, &settings); err != nil {
		return nil, fmt.Errorf("parsing the output of go env: %w", err)
	}
	env := []string{"GOENV=off", "GOWORK=off", "CGO_ENABLED=0", "GOAMD64=v1", "GOARM64=v8.0"}
	for _, setting := range os.Environ() {
		if !strings.HasPrefix(setting, "GO") && !strings.HasPrefix(setting, "CGO_") {
			env = append(env, setting)
		}
	}
	for _, name := range carried {
		env = append(env, name+"="+settings[name])
	}
	return env, nil
}

func (o *options) buildFor(ctx context.Context, platform string, env []string, scratch string) ([]built, error) {
	args := []string{"build", "-trimpath", "-buildvcs=false", "-mod=readonly",
		"-ldflags", "-s -w -buildid= -X " + linkedVersion + "=" + o.version, "-o", scratch + string(filepath.Separator)}
	if _, err := o.run(ctx, env, "go", append(args, o.packages()...)...); err != nil {
		return nil, err
	}
	folders, err := o.moduleFolders(ctx, env)
	if err != nil {
		return nil, err
	}
	var all []built
	for _, program := range o.programs {
		binary, err := os.ReadFile(filepath.Join(scratch, program))
		if err != nil {
			return nil, err
		}
		bom, err := o.billOfMaterials(program, platform, binary, folders)
		if err != nil {
			return nil, err
		}
		all = append(all, built{program, platform, binary, bom})
	}
	return all, nil
}

// moduleFolders returns the source folders of the modules that the programs are built from.
func (o *options) moduleFolders(ctx context.Context, env []string) (map[string]string, error) {
	args := []string{"list", "-deps", "-f", "{{with .Module}}{{.Path}}\t{{.Dir}}{{end}}"}
	out, err := o.run(ctx, env, "go", append(args, o.packages()...)...)
	folders := map[string]string{}
	for line := range strings.Lines(string(out)) {
		if path, folder, ok := strings.Cut(strings.TrimSpace(line), "\t"); ok {
			folders[path] = folder
		}
	}
	return folders, err
}

func (o *options) packages() []string {
	var out []string
	for _, program := range o.programs {
		out = append(out, "./cmd/"+program)
	}
	return out
}

// run runs a program in the source and returns what it printed.
func (o *options) run(ctx context.Context, env []string, name string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir, cmd.Env = o.source, env
	// On an interrupt, go removes its temporary files; when killed, it would leave them.
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 10 * time.Second
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%s %s in %s: %w\n%s", name, args[0], o.source, err, strings.TrimSpace(errs.String()))
	}
	return out, nil
}
