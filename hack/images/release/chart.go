package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"sigs.k8s.io/yaml"

	"kube-queue.dev/kube-queue/hack/images/internal/oci"
)

const (
	chartName   = "kube-queue"
	chartFolder = "charts/kube-queue"
	// The media types of a chart in a registry, which helm defines.
	chartConfigType  = "application/vnd.cncf.helm.config.v1+json"
	chartContentType = "application/vnd.cncf.helm.chart.content.v1.tar+gzip"
)

// metadata is what the release needs from Chart.yaml.
type metadata struct {
	Version, AppVersion, Description string
}

func (o *options) chartRepository() string { return o.repository() + "/charts/" + chartName }

// checkChart returns the metadata of the chart. The chart must have the version of the release, because the manifests
// and the documentation of the commit name it too.
func (o *options) checkChart() (metadata, error) {
	var m metadata
	text, err := o.read(chartFolder + "/Chart.yaml")
	if err != nil {
		return m, err
	}
	if err := yaml.Unmarshal(text, &m); err != nil {
		return m, fmt.Errorf("%s/Chart.yaml: %w", chartFolder, err)
	}
	if m.Version != o.version || m.AppVersion != o.version {
		return m, fmt.Errorf("%s/Chart.yaml has version %s and appVersion %s: set both to %s, and run make generate", chartFolder, m.Version, m.AppVersion, o.version)
	}
	return m, nil
}

// addChart adds the chart, and the manifests rendered from it.
func (r *release) addChart(ctx context.Context) error {
	chart, err := r.chartPackage()
	if err != nil {
		return fmt.Errorf("packing the chart: %w", err)
	}
	packed, digest, err := r.chartArchive(chart)
	if err != nil {
		return fmt.Errorf("packing the chart: %w", err)
	}
	name := chartName + "-" + r.version
	r.add(name+".tgz", "the chart", chart)
	r.add(name+"-chart.tar", "the chart as an OCI archive", packed)
	r.published = append(r.published, published{"chart", r.chartRepository() + ":" + r.version, digest.String()})
	return r.addManifests(ctx, chart)
}

// chartPackage returns the chart as helm package would, with the registry of the release as the
// default of its values. All files have the same time.
func (o *options) chartPackage() ([]byte, error) {
	var files []oci.File
	chart := os.DirFS(filepath.Join(o.source, filepath.FromSlash(chartFolder)))
	// In lexical order, which does not depend on the file system.
	err := fs.WalkDir(chart, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		if !entry.Type().IsRegular() {
			return fmt.Errorf("%s is not a file", path)
		}
		data, err := fs.ReadFile(chart, path)
		switch {
		case err != nil:
		case path == "values.yaml":
			data, err = o.withRegistry(data)
		case path == "Chart.yaml":
			data, err = o.withReference(data)
		}
		files = append(files, oci.File{Name: chartName + "/" + path, Data: data, Mode: 0o644})
		return err
	})
	if err != nil {
		return nil, err
	}
	return oci.TarGzip(o.created, files)
}

// withRegistry sets the default of image.registry. It edits the text, to keep the comments that document the values.
func (o *options) withRegistry(values []byte) ([]byte, error) {
	changed := bytes.Replace(values, []byte("\n  registry: \"\"\n"), []byte("\n  registry: "+o.registry+"\n"), 1)
	var read struct{ Image struct{ Registry string } }
	if err := yaml.Unmarshal(changed, &read); err != nil {
		return nil, fmt.Errorf("values.yaml: %w", err)
	}
	if read.Image.Registry != o.registry {
		return nil, errors.New(`values.yaml: the first line with registry: "" is not image.registry`)
	}
	return changed, nil
}

// withReference sets the annotation that the notes of the chart use to name it in commands.
func (o *options) withReference(text []byte) ([]byte, error) {
	const name = "\n  kube-queue.dev/reference: "
	changed := bytes.Replace(text, []byte(name+chartFolder+"\n"), fmt.Appendf(nil, "%soci://%s --version %s\n", name, o.chartRepository(), o.version), 1)
	if bytes.Equal(changed, text) {
		return nil, fmt.Errorf("%s/Chart.yaml: the annotation kube-queue.dev/reference is not %s", chartFolder, chartFolder)
	}
	return changed, nil
}

// chartArchive returns the chart as a tar file with an OCI image layout, as helm push writes it to
// a registry.
func (r *release) chartArchive(chart []byte) ([]byte, digest.Digest, error) {
	text, err := r.read(chartFolder + "/Chart.yaml")
	if err == nil {
		text, err = r.withReference(text)
	}
	if err != nil {
		return nil, "", err
	}
	config, err := yaml.YAMLToJSON(text)
	if err != nil {
		return nil, "", fmt.Errorf("%s/Chart.yaml: %w", chartFolder, err)
	}
	layout := oci.NewLayout()
	manifest := layout.AddManifest(ocispec.Manifest{
		Config: layout.Add(chartConfigType, config),
		Layers: []ocispec.Descriptor{layout.Add(chartContentType, chart)},
		Annotations: map[string]string{
			ocispec.AnnotationTitle: chartName, ocispec.AnnotationVersion: r.chart.Version, ocispec.AnnotationDescription: r.chart.Description,
			ocispec.AnnotationCreated: r.created.Format(time.RFC3339), ocispec.AnnotationRevision: r.revision,
		},
	})
	packed, err := layout.Archive(r.created, manifest, r.chartRepository(), r.version)
	return packed, manifest.Digest, err
}
