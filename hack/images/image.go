package main

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"kube-queue.dev/kube-queue/hack/images/internal/oci"
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
	files, err := oci.Tar(opts.created, []oci.File{
		{Name: "etc/"},
		{Name: "etc/group", Data: []byte(group), Mode: 0o644},
		{Name: "etc/passwd", Data: []byte(passwd), Mode: 0o644},
		{Name: program, Data: binary, Mode: 0o755},
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
