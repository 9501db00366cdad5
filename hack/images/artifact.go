package main

import (
	"encoding/json"
	"fmt"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/partial"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"kube-queue.dev/kube-queue/hack/images/internal/oci"
)

const (
	bomType = "application/vnd.cyclonedx+json"
	// The media type that OCI requires for the config of a manifest without config.
	emptyType = types.MediaType("application/vnd.oci.empty.v1+json")
)

// attached is a bill of materials as an OCI 1.1 artifact. Its manifest names the image as its
// subject, so a registry lists it among the referrers of the image. Tools copy it together
// with the image, because the index lists both.
type attached struct {
	bom      []byte
	manifest []byte
}

func attach(bom []byte, to v1.Image, notes map[string]string) (v1.Image, error) {
	subject, err := partial.Descriptor(to)
	if err != nil {
		return nil, fmt.Errorf("describing the image of a bill of materials: %w", err)
	}
	config, blob := oci.Describe(emptyType, []byte("{}")), oci.Describe(bomType, bom)
	manifest, err := json.Marshal(v1.Manifest{
		SchemaVersion: 2, MediaType: types.OCIManifestSchema1, ArtifactType: bomType,
		Config: config, Layers: []v1.Descriptor{blob},
		Subject:     &v1.Descriptor{MediaType: subject.MediaType, Size: subject.Size, Digest: subject.Digest},
		Annotations: notes,
	})
	if err != nil {
		return nil, fmt.Errorf("writing the manifest of a bill of materials: %w", err)
	}
	return partial.CompressedToImage(&attached{bom: bom, manifest: manifest})
}

func (a *attached) RawManifest() ([]byte, error)        { return a.manifest, nil }
func (a *attached) RawConfigFile() ([]byte, error)      { return []byte("{}"), nil }
func (a *attached) MediaType() (types.MediaType, error) { return types.OCIManifestSchema1, nil }

// LayerByDigest returns the bill of materials, which is the only blob.
func (a *attached) LayerByDigest(v1.Hash) (partial.CompressedLayer, error) {
	return static.NewLayer(a.bom, bomType), nil
}
