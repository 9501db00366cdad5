package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
)

// deployValues is the file with the values of the chart for manifests, including those in deploy/.
const deployValues = "hack/deploy-values.yaml"

// variant is a file of manifests for kubectl: the chart, rendered for some clusters.
type variant struct {
	// File is its name, For the clusters that it is for.
	File, For string
	// flags are flags of helm template.
	flags []string
}

// variants are rendered like deploy/ and deploy/webhook by hack/render-deploy.sh.
var variants = []variant{
	{"install.yaml", "Kubernetes 1.36 or later", []string{"--kube-version", "1.36.0"}},
	{"install-webhook.yaml", "Kubernetes 1.30 to 1.35", []string{"--kube-version", "1.30.0", "--set", "holdPolicies.by=webhook"}},
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
	template := []string{"template", chartName, path, "--namespace", "kube-queue", "--values", deployValues}
	for _, v := range variants {
		out, err := r.run(ctx, env, r.helm, slices.Concat(template, v.flags)...)
		if err != nil {
			return fmt.Errorf("rendering %s: %w", v.File, err)
		}
		if !bytes.Contains(out, []byte("image: "+r.repository()+"/")) {
			return fmt.Errorf("rendering %s: it has no image of %s: does %s set image.registry?", v.File, r.repository(), deployValues)
		}
		head := fmt.Sprintf("# kube-queue %s for %s.\n# kubectl apply --server-side -f %s\n", r.tag, v.For, v.File)
		r.add(v.File, "all manifests, for "+v.For, append([]byte(head), out...))
	}
	return nil
}
