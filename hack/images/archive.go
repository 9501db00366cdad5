package main

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"kube-queue.dev/kube-queue/hack/images/internal/oci"
)

// built is the image of one program for one platform.
type built struct {
	on    platform
	image v1.Image
	bom   v1.Image
}

// indexOf combines the images of a program in an index: first the images, then their bills
// of materials. These have the platform unknown/unknown, which no node requests.
func indexOf(all []built, notes map[string]string) ([]byte, error) {
	index := imageIndex{SchemaVersion: 2, MediaType: types.OCIImageIndex, Annotations: notes}
	add := func(img v1.Image, os, arch string) error {
		manifest, err := img.RawManifest()
		if err != nil {
			return err
		}
		d := oci.Describe(types.OCIManifestSchema1, manifest)
		index.Manifests = append(index.Manifests, indexEntry{d.MediaType, d.Digest, d.Size, imagePlatform{arch, os}})
		return nil
	}
	for _, b := range all {
		if err := add(b.image, b.on.os, b.on.arch); err != nil {
			return nil, err
		}
	}
	for _, b := range all {
		if err := add(b.bom, "unknown", "unknown"); err != nil {
			return nil, err
		}
	}
	return json.Marshal(index)
}

// imageIndex is an index with its fields in the order of the Go types of OCI, and without fields
// that OCI 1.0 does not have: skopeo decodes an index and encodes it again, and only an index that
// stays the same has the same digest in a registry. The types of go-containerregistry have another
// order.
type imageIndex struct {
	SchemaVersion int               `json:"schemaVersion"`
	MediaType     types.MediaType   `json:"mediaType"`
	Manifests     []indexEntry      `json:"manifests"`
	Annotations   map[string]string `json:"annotations,omitempty"`
}

type indexEntry struct {
	MediaType types.MediaType `json:"mediaType"`
	Digest    v1.Hash         `json:"digest"`
	Size      int64           `json:"size"`
	Platform  imagePlatform   `json:"platform"`
}

type imagePlatform struct {
	Architecture string `json:"architecture"`
	OS           string `json:"os"`
}

// archive packs the index and everything that it references into a tar file with an OCI image
// layout. index.json lists only the index, because podman and skopeo cannot choose between
// several entries. name is the full name of the image with its tag.
func archive(all []built, index []byte, name, tag string, created time.Time) ([]byte, error) {
	listed := oci.Describe(types.OCIImageIndex, index)
	blobs := map[string][]byte{listed.Digest.Hex: index}
	var loads []dockerLoad
	for _, b := range all {
		load, err := collect(blobs, b.image)
		if err != nil {
			return nil, fmt.Errorf("packing %s for %s: %w", name, b.on, err)
		}
		if _, err := collect(blobs, b.bom); err != nil {
			return nil, fmt.Errorf("packing the bill of materials of %s for %s: %w", name, b.on, err)
		}
		load.RepoTags = []string{name}
		loads = append(loads, load)
	}
	// Docker keeps the last of several images with one tag. The first platform is the most
	// common one.
	slices.Reverse(loads)
	listed.Annotations = oci.Named(name, tag)
	docker, err := dockerManifest(loads)
	if err != nil {
		return nil, err
	}
	return oci.Layout(created, blobs, []v1.Descriptor{listed}, docker)
}

// dockerLoad is an entry of manifest.json, which Docker reads if it uses its own image store.
// Tools with OCI support ignore it.
type dockerLoad struct {
	Config   string
	RepoTags []string
	Layers   []string
}

// collect adds the blobs of an image.
func collect(blobs map[string][]byte, img v1.Image) (dockerLoad, error) {
	var load dockerLoad
	manifest, err := img.RawManifest()
	if err != nil {
		return load, err
	}
	blobs[oci.Describe("", manifest).Digest.Hex] = manifest
	config, err := img.RawConfigFile()
	if err != nil {
		return load, err
	}
	digest := oci.Describe("", config).Digest.Hex
	blobs[digest] = config
	load.Config = oci.BlobPath(digest)
	parsed, err := img.Manifest()
	if err != nil {
		return load, err
	}
	for _, descriptor := range parsed.Layers {
		layer, err := img.LayerByDigest(descriptor.Digest)
		if err != nil {
			return load, err
		}
		data, err := layer.Compressed()
		if err != nil {
			return load, err
		}
		content, err := io.ReadAll(data)
		data.Close()
		if err != nil {
			return load, err
		}
		blobs[descriptor.Digest.Hex] = content
		load.Layers = append(load.Layers, oci.BlobPath(descriptor.Digest.Hex))
	}
	return load, nil
}

// dockerManifest is the file that Docker reads.
func dockerManifest(loads []dockerLoad) (oci.File, error) {
	docker, err := json.Marshal(loads)
	return oci.File{Name: "manifest.json", Data: docker, Mode: 0o644}, err
}
