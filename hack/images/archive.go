package main

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"
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
		d := describe(types.OCIManifestSchema1, manifest)
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
	listed := describe(types.OCIImageIndex, index)
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
	listed.Annotations = map[string]string{
		"io.containerd.image.name":          name,
		"org.opencontainers.image.ref.name": tag,
	}
	top := v1.IndexManifest{SchemaVersion: 2, MediaType: types.OCIImageIndex, Manifests: []v1.Descriptor{listed}}
	return layoutTar(created, blobs, top, loads)
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
	blobs[describe("", manifest).Digest.Hex] = manifest
	config, err := img.RawConfigFile()
	if err != nil {
		return load, err
	}
	digest := describe("", config).Digest.Hex
	blobs[digest] = config
	load.Config = blobPath(digest)
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
		load.Layers = append(load.Layers, blobPath(descriptor.Digest.Hex))
	}
	return load, nil
}

func blobPath(hex string) string { return "blobs/sha256/" + hex }

func layoutTar(created time.Time, blobs map[string][]byte, top v1.IndexManifest, loads []dockerLoad) ([]byte, error) {
	index, err := json.Marshal(top)
	if err != nil {
		return nil, err
	}
	docker, err := json.Marshal(loads)
	if err != nil {
		return nil, err
	}
	files := []file{{name: "blobs/"}, {name: "blobs/sha256/"}}
	for _, hex := range slices.Sorted(maps.Keys(blobs)) {
		files = append(files, file{name: blobPath(hex), data: blobs[hex], mode: 0o644})
	}
	files = append(files,
		file{name: "index.json", data: index, mode: 0o644},
		file{name: "manifest.json", data: docker, mode: 0o644},
		file{name: "oci-layout", data: []byte(`{"imageLayoutVersion":"1.0.0"}`), mode: 0o644})
	return tree(created, files)
}
