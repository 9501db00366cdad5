package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"kube-queue.dev/kube-queue/hack/images/internal/oci"
)

// The user that the program runs as. Some programs require that their user has a name, so the image defines one, like
// other images without a shell.
const (
	user   = "65532:65532"
	passwd = "root:x:0:0:root:/:/sbin/nologin\nnonroot:x:65532:65532:nonroot:/:/sbin/nologin\n"
	group  = "root:x:0:\nnonroot:x:65532:\n"
)

const bomType = "application/vnd.cyclonedx+json"

// dockerImage is an entry of manifest.json, which Docker reads if it uses its own image store.
// Tools with OCI support ignore it.
type dockerImage struct {
	Config           string
	RepoTags, Layers []string
}

func (o *options) imageName(program string) string {
	return o.repository() + "/" + program + ":" + o.version
}

// imageArchive packs the images of a program for all platforms, and returns the digest of their index. The index lists
// the images first, then their bills of materials. These have the platform unknown/unknown, which no node requests.
func (o *options) imageArchive(program string, all []built) ([]byte, digest.Digest, error) {
	notes := o.annotations(program)
	layout := oci.NewLayout()
	var images, boms []ocispec.Descriptor
	var docker []dockerImage
	for _, b := range all {
		arch, isLinux := strings.CutPrefix(b.platform, "linux/")
		if b.program != program || !isLinux {
			continue
		}
		image, unpacked, err := o.addImage(layout, b, arch, notes)
		if err != nil {
			return nil, "", fmt.Errorf("packing %s for %s: %w", program, b.platform, err)
		}
		unpacked.RepoTags = []string{o.imageName(program)}
		docker = append(docker, unpacked)
		boms = append(boms, attach(layout, b.bom, image, notes))
		image.Platform = &ocispec.Platform{OS: "linux", Architecture: arch}
		images = append(images, image)
	}
	index := layout.AddJSON(ocispec.MediaTypeImageIndex, oci.Index(slices.Concat(images, boms), notes))
	// Docker keeps the last of several images with one tag. The first platform is the most
	// common one.
	slices.Reverse(docker)
	manifest, err := json.Marshal(docker)
	if err != nil {
		return nil, "", err
	}
	data, err := layout.Archive(o.created, index, o.repository()+"/"+program, o.version,
		oci.File{Name: "manifest.json", Data: manifest, Mode: 0o644})
	return data, index.Digest, err
}

// addImage adds the image of one program for one platform. It contains only the program and
// the name of its user. CA certificates are not needed: the programs only connect to the API
// server, whose CA is mounted with the ServiceAccount or configured in a kubeconfig.
func (o *options) addImage(layout *oci.Layout, b built, arch string, notes map[string]string) (ocispec.Descriptor, dockerImage, error) {
	files, err := oci.Tar(o.created, []oci.File{
		{Name: "etc/"},
		{Name: "etc/group", Data: []byte(group), Mode: 0o644},
		{Name: "etc/passwd", Data: []byte(passwd), Mode: 0o644},
		{Name: b.program, Data: b.binary, Mode: 0o755},
	})
	if err != nil {
		return ocispec.Descriptor{}, dockerImage{}, err
	}
	compressed, err := oci.Gzip(files)
	if err != nil {
		return ocispec.Descriptor{}, dockerImage{}, err
	}
	layer := layout.Add(ocispec.MediaTypeImageLayerGzip, compressed)
	config := layout.AddJSON(ocispec.MediaTypeImageConfig, ocispec.Image{
		Created: &o.created, Platform: ocispec.Platform{OS: "linux", Architecture: arch},
		Config:  ocispec.ImageConfig{User: user, WorkingDir: "/", Entrypoint: []string{"/" + b.program}, Labels: notes},
		RootFS:  ocispec.RootFS{Type: "layers", DiffIDs: []digest.Digest{digest.FromBytes(files)}},
		History: []ocispec.History{{Created: &o.created, CreatedBy: "images: " + b.program}},
	})
	image := layout.AddManifest(ocispec.Manifest{Config: config, Layers: []ocispec.Descriptor{layer}, Annotations: notes})
	return image, dockerImage{Config: oci.BlobPath(config), Layers: []string{oci.BlobPath(layer)}}, nil
}

// attach adds a bill of materials as an OCI 1.1 artifact. Its manifest names the image as its
// subject, so a registry lists it among the referrers of the image. Tools copy it together
// with the image, because the index lists both.
func attach(layout *oci.Layout, bom []byte, image ocispec.Descriptor, notes map[string]string) ocispec.Descriptor {
	artifact := layout.AddManifest(ocispec.Manifest{
		ArtifactType: bomType, Subject: &image, Annotations: notes,
		Config: layout.Add(ocispec.MediaTypeEmptyJSON, []byte("{}")),
		Layers: []ocispec.Descriptor{layout.Add(bomType, bom)},
	})
	artifact.Platform = &ocispec.Platform{OS: "unknown", Architecture: "unknown"}
	return artifact
}

// annotations returns the annotations and labels of an image. The source is not set, because the repository has no
// public address.
func (o *options) annotations(program string) map[string]string {
	notes := map[string]string{
		ocispec.AnnotationTitle:   program,
		ocispec.AnnotationVersion: o.version,
		ocispec.AnnotationCreated: o.created.Format("2006-01-02T15:04:05Z"),
	}
	if o.revision != "" {
		notes[ocispec.AnnotationRevision] = o.revision
	}
	if names := licencesIn(o.source); len(names) > 0 {
		notes[ocispec.AnnotationLicenses] = strings.Join(names, " AND ")
	}
	return notes
}
