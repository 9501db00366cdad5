package main

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"sigs.k8s.io/yaml"

	"kube-queue.dev/kube-queue/hack/images/internal/oci"
)

const (
	chartName   = "kube-queue"
	chartFolder = "charts/kube-queue"
	// The media types of a chart in a registry, which helm defines.
	chartConfigType  = types.MediaType("application/vnd.cncf.helm.config.v1+json")
	chartContentType = types.MediaType("application/vnd.cncf.helm.chart.content.v1.tar+gzip")
)

// metadata is what the release needs of Chart.yaml.
type metadata struct {
	Name, Version, AppVersion, Description string
}

// checkChart returns the metadata of the chart, whose version must be that of the release: the
// manifests and the documentation of the commit name it too.
func (o *options) checkChart() (metadata, error) {
	var m metadata
	text, err := o.read(chartFolder + "/Chart.yaml")
	if err != nil {
		return m, err
	}
	if err := yaml.Unmarshal([]byte(text), &m); err != nil {
		return m, fmt.Errorf("%s/Chart.yaml: %w", chartFolder, err)
	}
	if m.Name != chartName {
		return m, fmt.Errorf("%s/Chart.yaml: the chart is called %q, not %q", chartFolder, m.Name, chartName)
	}
	if m.Version != o.version || m.AppVersion != o.version {
		return m, fmt.Errorf("%s/Chart.yaml has version %s and appVersion %s: set both to %s, and run make generate", chartFolder, m.Version, m.AppVersion, o.version)
	}
	return m, nil
}

// chartPackage returns the chart as helm package would, with the registry of the release as the
// default of its values. All files have the same time.
func (o *options) chartPackage(created time.Time) ([]byte, error) {
	var files []oci.File
	root := filepath.Join(o.source, filepath.FromSlash(chartFolder))
	// In lexical order, which does not depend on the file system.
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		if !entry.Type().IsRegular() {
			return fmt.Errorf("%s is not a file", path)
		}
		name, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if name == "values.yaml" {
			if data, err = o.withRegistry(data); err != nil {
				return err
			}
		}
		files = append(files, oci.File{Name: chartName + "/" + filepath.ToSlash(name), Data: data, Mode: 0o644})
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("packing the chart: %w", err)
	}
	return tarGzip(created, files)
}

// withRegistry sets the default of image.registry. It changes the text, because comments of the
// values are their documentation.
func (o *options) withRegistry(values []byte) ([]byte, error) {
	const setting = "  registry: \"\"\n"
	if bytes.Count(values, []byte("\n"+setting)) != 1 {
		return nil, fmt.Errorf("values.yaml has not one line %q", strings.TrimSpace(setting))
	}
	changed := bytes.Replace(values, []byte(setting), []byte("  registry: "+o.registry+"\n"), 1)
	var read struct{ Image struct{ Registry string } }
	if err := yaml.Unmarshal(changed, &read); err != nil {
		return nil, fmt.Errorf("values.yaml: %w", err)
	}
	if read.Image.Registry != o.registry {
		return nil, errors.New("values.yaml: image.registry is not where it was expected")
	}
	return changed, nil
}

// tarGzip returns a compressed archive without the time and the system of the machine.
func tarGzip(created time.Time, files []oci.File) ([]byte, error) {
	packed, err := oci.Tar(created, files)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	if _, err := w.Write(packed); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// chartArchive returns the chart as a tar file with an OCI image layout, as helm push writes it to
// a registry.
func (o *options) chartArchive(m metadata, chart []byte, created time.Time, revision string) ([]byte, v1.Hash, error) {
	text, err := o.read(chartFolder + "/Chart.yaml")
	if err != nil {
		return nil, v1.Hash{}, err
	}
	config, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		return nil, v1.Hash{}, fmt.Errorf("%s/Chart.yaml: %w", chartFolder, err)
	}
	const prefix = "org.opencontainers.image."
	configured, layer := oci.Describe(chartConfigType, config), oci.Describe(chartContentType, chart)
	manifest, err := json.Marshal(v1.Manifest{
		SchemaVersion: 2, MediaType: types.OCIManifestSchema1, Config: configured, Layers: []v1.Descriptor{layer},
		Annotations: map[string]string{
			prefix + "title": m.Name, prefix + "version": m.Version, prefix + "description": m.Description,
			prefix + "created": created.Format(time.RFC3339), prefix + "revision": revision,
		},
	})
	if err != nil {
		return nil, v1.Hash{}, fmt.Errorf("writing the manifest of the chart: %w", err)
	}
	listed := oci.Describe(types.OCIManifestSchema1, manifest)
	blobs := map[string][]byte{listed.Digest.Hex: manifest, configured.Digest.Hex: config, layer.Digest.Hex: chart}
	listed.Annotations = oci.Named(o.chartRepository()+":"+o.version, o.version)
	archive, err := oci.Layout(created, blobs, []v1.Descriptor{listed})
	return archive, listed.Digest, err
}
