package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// The user that the program runs as. Some programs require a name of their user, so the image
// defines one, the same as other images without a shell.
const (
	user   = "65532:65532"
	passwd = "root:x:0:0:root:/:/sbin/nologin\nnonroot:x:65532:65532:nonroot:/:/sbin/nologin\n"
	group  = "root:x:0:\nnonroot:x:65532:\n"
)

// image returns the image of one program for one platform. It contains only the program and
// the name of its user. CA certificates are not needed: the programs only connect to the API
// server, whose CA is mounted with the ServiceAccount or configured in a kubeconfig.
func image(program string, on platform, binary []byte, opts *options, notes map[string]string) (v1.Image, error) {
	files, err := tree(opts.created, []file{
		{name: "etc/"},
		{name: "etc/group", data: []byte(group), mode: 0o644},
		{name: "etc/passwd", data: []byte(passwd), mode: 0o644},
		{name: program, data: binary, mode: 0o755},
	})
	if err != nil {
		return nil, fmt.Errorf("packing %s for %s: %w", program, on, err)
	}
	layer, err := tarball.LayerFromOpener(
		func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(files)), nil },
		tarball.WithCompressionLevel(gzip.DefaultCompression),
		tarball.WithMediaType(types.OCILayer),
		tarball.WithCompressedCaching)
	if err != nil {
		return nil, fmt.Errorf("compressing %s for %s: %w", program, on, err)
	}
	created := v1.Time{Time: opts.created}
	base := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	base, err = mutate.ConfigFile(base, &v1.ConfigFile{
		OS: on.os, Architecture: on.arch, Created: created,
		RootFS: v1.RootFS{Type: "layers"},
		Config: v1.Config{User: user, WorkingDir: "/", Entrypoint: []string{"/" + program}, Labels: notes},
	})
	if err != nil {
		return nil, fmt.Errorf("configuring %s for %s: %w", program, on, err)
	}
	img, err := mutate.Append(base, mutate.Addendum{Layer: layer,
		History: v1.History{Created: created, CreatedBy: "images: " + program}})
	if err != nil {
		return nil, fmt.Errorf("layering %s for %s: %w", program, on, err)
	}
	return mutate.Annotations(img, notes).(v1.Image), nil
}

// file is an entry of an archive; the name of a folder ends with a slash.
type file struct {
	name string
	data []byte
	mode int64
}

// tree returns a tar archive of the files in the given order. All have the same time and
// belong to root.
func tree(created time.Time, files []file) ([]byte, error) {
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, f := range files {
		header := &tar.Header{Name: f.name, Typeflag: tar.TypeReg, Mode: f.mode, Size: int64(len(f.data)),
			ModTime: created, Format: tar.FormatUSTAR}
		if f.name[len(f.name)-1] == '/' {
			header.Typeflag, header.Mode = tar.TypeDir, 0o755
		}
		if err := w.WriteHeader(header); err != nil {
			return nil, err
		}
		if _, err := w.Write(f.data); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}
