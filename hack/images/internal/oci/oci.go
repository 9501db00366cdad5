// Package oci writes archives of files and OCI image layouts that are the same bytes for the same
// content.
package oci

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// File is an entry of an archive; the name of a folder ends with a slash.
type File struct {
	Name string
	Data []byte
	Mode int64
}

// Tar returns a tar archive of the files in the given order. All have the same time and
// belong to root.
func Tar(created time.Time, files []File) ([]byte, error) {
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, f := range files {
		header := &tar.Header{Name: f.Name, Typeflag: tar.TypeReg, Mode: f.Mode, Size: int64(len(f.Data)),
			ModTime: created, Format: tar.FormatUSTAR}
		if f.Name[len(f.Name)-1] == '/' {
			header.Typeflag, header.Mode = tar.TypeDir, 0o755
		}
		if err := w.WriteHeader(header); err != nil {
			return nil, err
		}
		if _, err := w.Write(f.Data); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// Describe returns the descriptor of a blob.
func Describe(kind types.MediaType, data []byte) v1.Descriptor {
	digest, size, _ := v1.SHA256(bytes.NewReader(data))
	return v1.Descriptor{MediaType: kind, Size: size, Digest: digest}
}

// BlobPath returns the path of a blob in a layout.
func BlobPath(hex string) string { return "blobs/sha256/" + hex }

// Layout packs an OCI image layout into a tar archive: the blobs by digest, the manifests that
// index.json lists, and additional files in the root of the layout.
func Layout(created time.Time, blobs map[string][]byte, listed []v1.Descriptor, additional ...File) ([]byte, error) {
	top := v1.IndexManifest{SchemaVersion: 2, MediaType: types.OCIImageIndex, Manifests: listed}
	index, err := json.Marshal(top)
	if err != nil {
		return nil, err
	}
	files := []File{{Name: "blobs/"}, {Name: "blobs/sha256/"}}
	for _, hex := range slices.Sorted(maps.Keys(blobs)) {
		files = append(files, File{Name: BlobPath(hex), Data: blobs[hex], Mode: 0o644})
	}
	files = append(files, File{Name: "index.json", Data: index, Mode: 0o644})
	files = append(files, additional...)
	files = append(files, File{Name: "oci-layout", Data: []byte(`{"imageLayoutVersion":"1.0.0"}`), Mode: 0o644})
	return Tar(created, files)
}

// Named returns the annotations with which an entry of index.json has a name and a tag: containerd
// reads the name, other tools the tag.
func Named(name, tag string) map[string]string {
	return map[string]string{NameAnnotation: name, "org.opencontainers.image.ref.name": tag}
}

// NameAnnotation is the full name of an image with its tag.
const NameAnnotation = "io.containerd.image.name"
