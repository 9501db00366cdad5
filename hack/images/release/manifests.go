package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"sigs.k8s.io/yaml"
)

const variantsFile = "hack/release-variants.yaml"

// variant is a file of manifests for kubectl.
type variant struct {
	// File is its name, For the clusters that it is for.
	File, For string
	// Kubernetes is the version that the chart is rendered for.
	Kubernetes string
	// Values is a file with the values of the chart.
	Values string
	// Set are further values, as NAME=VALUE.
	Set []string
}

func (o *options) variants() ([]variant, error) {
	text, err := o.read(variantsFile)
	if err != nil {
		return nil, err
	}
	var all []variant
	if err := yaml.UnmarshalStrict([]byte(text), &all); err != nil {
		return nil, fmt.Errorf("%s: %w", variantsFile, err)
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("%s lists no manifests", variantsFile)
	}
	for _, v := range all {
		if v.File == "" || v.For == "" || v.Kubernetes == "" || v.Values == "" || filepath.Base(v.File) != v.File {
			return nil, fmt.Errorf("%s: %q needs the name of a file, for, kubernetes and values", variantsFile, v.File)
		}
	}
	return all, nil
}

// manifests renders the packaged chart, as helm would install it.
func (o *options) manifests(ctx context.Context, v variant, chart, scratch string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, o.helm, "template", chartName, chart, "--namespace", "kube-queue",
		"--kube-version", v.Kubernetes, "--values", filepath.Join(o.source, filepath.FromSlash(v.Values)))
	for _, value := range v.Set {
		cmd.Args = append(cmd.Args, "--set", value)
	}
	// Settings and plugins of the user must not change the result.
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + scratch}
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("rendering %s: %s template: %w\n%s", v.File, o.helm, err, strings.TrimSpace(errs.String()))
	}
	if !bytes.Contains(out, []byte("image: "+o.imageRepository()+"/")) {
		return nil, fmt.Errorf("rendering %s: it has no image of %s: does %s set image.registry?", v.File, o.imageRepository(), v.Values)
	}
	head := fmt.Sprintf("# kube-queue %s for %s.\n# kubectl apply --server-side -f %s\n", o.tag, v.For, v.File)
	return append([]byte(head), out...), nil
}

// interruptible runs a program that cleans up after an interrupt.
func interruptible(ctx context.Context, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 30 * time.Second
	return cmd
}

// checkPrograms fails early if a program is not there.
func (o *options) checkPrograms() error {
	for _, program := range []string{o.images, o.helm} {
		if o.chartOnly && program == o.images {
			continue
		}
		if _, err := os.Stat(program); errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("%s is not built: run make release, which builds it", program)
		} else if err != nil {
			return err
		}
	}
	return nil
}
