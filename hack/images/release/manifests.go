package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"

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

func (o *options) readVariants() ([]variant, error) {
	text, err := o.read(variantsFile)
	if err != nil {
		return nil, err
	}
	var all []variant
	if err := yaml.UnmarshalStrict(text, &all); err != nil {
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

// addManifests renders the packaged chart, as helm would install it.
func (r *release) addManifests(ctx context.Context, chart []byte) error {
	scratch, err := os.MkdirTemp("", "kube-queue-chart-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(scratch)
	path := filepath.Join(scratch, "chart.tgz")
	if err := os.WriteFile(path, chart, 0o644); err != nil {
		return err
	}
	// Settings and plugins of the user must not change the result.
	env := []string{"PATH=" + os.Getenv("PATH"), "HOME=" + scratch}
	for _, v := range r.variants {
		args := []string{"template", chartName, path, "--namespace", "kube-queue", "--kube-version", v.Kubernetes, "--values", v.Values}
		for _, value := range v.Set {
			args = append(args, "--set", value)
		}
		out, err := r.run(ctx, env, r.helm, args...)
		if err != nil {
			return fmt.Errorf("rendering %s: %w", v.File, err)
		}
		if !bytes.Contains(out, []byte("image: "+r.repository()+"/")) {
			return fmt.Errorf("rendering %s: it has no image of %s: does %s set image.registry?", v.File, r.repository(), v.Values)
		}
		head := fmt.Sprintf("# kube-queue %s for %s.\n# kubectl apply --server-side -f %s\n", r.tag, v.For, v.File)
		r.add(v.File, "all manifests, for "+v.For, append([]byte(head), out...))
	}
	return nil
}
