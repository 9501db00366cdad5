// Package oci writes archives of files and OCI image layouts. The same content gives the same bytes.
package oci

import (
	"archive/tar"
	"bytes"
	"cmp"
	"compress/gzip"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/specs-go"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// NameAnnotation is the full name of an image with its tag. containerd reads it; other tools read
// the tag.
const NameAnnotation = "io.containerd.image.name"

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
		if strings.HasSuffix(f.Name, "/") {
			header.Typeflag, header.Mode = tar.TypeDir, 0o755
		}
		if err := w.WriteHeader(header); err != nil {
			return nil, err
		}
		if _, err := w.Write(f.Data); err != nil {
			return nil, err
		}
	}
	err := w.Close()
	return out.Bytes(), err
}

// TarGzip returns a compressed tar archive.
func TarGzip(created time.Time, files []File) ([]byte, error) {
	packed, err := Tar(created, files)
	if err != nil {
		return nil, err
	}
	return Gzip(packed)
}

// Gzip compresses data without recording the time or the system of the machine.
func Gzip(data []byte) ([]byte, error) {
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	_, err := w.Write(data)
	err = errors.Join(err, w.Close())
	return out.Bytes(), err
}

// Layout is an OCI image layout: blobs by digest. Archive returns the first error of an addition.
type Layout struct {
	blobs map[digest.Digest][]byte
	err   error
}

// NewLayout returns an empty layout.
func NewLayout() *Layout { return &Layout{blobs: map[digest.Digest][]byte{}} }

// Add adds a blob.
func (l *Layout) Add(mediaType string, data []byte) ocispec.Descriptor {
	d := ocispec.Descriptor{MediaType: mediaType, Digest: digest.FromBytes(data), Size: int64(len(data))}
	l.blobs[d.Digest] = data
	return d
}

// AddJSON adds a document. The OCI types have the same field order as other tools: skopeo decodes an index and encodes
// it again, and its digest in a registry stays the same only if its bytes do.
func (l *Layout) AddJSON(mediaType string, document any) ocispec.Descriptor {
	data, err := json.Marshal(document)
	l.err = cmp.Or(l.err, err)
	return l.Add(mediaType, data)
}

// AddManifest adds the manifest of an image, or of another artifact, and completes its fields.
func (l *Layout) AddManifest(m ocispec.Manifest) ocispec.Descriptor {
	m.Versioned, m.MediaType = specs.Versioned{SchemaVersion: 2}, ocispec.MediaTypeImageManifest
	return l.AddJSON(m.MediaType, m)
}

// Index returns an index of manifests.
func Index(manifests []ocispec.Descriptor, annotations map[string]string) ocispec.Index {
	return ocispec.Index{Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: ocispec.MediaTypeImageIndex,
		Manifests: manifests, Annotations: annotations}
}

// BlobPath returns the path of a blob in an archive.
func BlobPath(d ocispec.Descriptor) string { return "blobs/sha256/" + d.Digest.Encoded() }

// Archive packs the layout into a tar archive, with additional files. index.json lists only one
// entry, because podman and skopeo cannot choose between several. It has the name repository:tag.
func (l *Layout) Archive(created time.Time, entry ocispec.Descriptor, repository, tag string, additional ...File) ([]byte, error) {
	entry.Annotations = map[string]string{NameAnnotation: repository + ":" + tag, ocispec.AnnotationRefName: tag}
	index, err := json.Marshal(Index([]ocispec.Descriptor{entry}, nil))
	if err := cmp.Or(l.err, err); err != nil {
		return nil, err
	}
	files := append(additional,
		File{Name: "blobs/"}, File{Name: "blobs/sha256/"},
		File{Name: ocispec.ImageIndexFile, Data: index, Mode: 0o644},
		File{Name: ocispec.ImageLayoutFile, Data: []byte(`{"imageLayoutVersion":"1.0.0"}`), Mode: 0o644})
	for d, data := range l.blobs {
		files = append(files, File{Name: "blobs/sha256/" + d.Encoded(), Data: data, Mode: 0o644})
	}
	slices.SortFunc(files, func(a, b File) int { return cmp.Compare(a.Name, b.Name) })
	return Tar(created, files)
}
