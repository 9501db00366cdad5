package main

import (
	"archive/tar"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"kube-queue.dev/kube-queue/hack/images/internal/oci"
)

// startPush reads the flags of "release push".
func startPush(ctx context.Context, args []string, in io.Reader, out, log io.Writer) error {
	fs := flag.NewFlagSet("release push", flag.ContinueOnError)
	fs.SetOutput(log)
	folder := fs.String("folder", "bin/release", "`folder` of the release")
	username := fs.String("username", "", "user of the registry; empty for a registry without users")
	fromStdin := fs.Bool("password-stdin", false, "read the password of the user from standard input")
	if err := fs.Parse(args); err != nil {
		return err
	}
	if fs.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q: only flags are accepted; see --help", fs.Arg(0))
	}
	if (*username == "") == *fromStdin {
		return errors.New("set --username and --password-stdin together")
	}
	auth := authn.Anonymous
	if *fromStdin {
		password, err := io.ReadAll(in)
		if err != nil {
			return fmt.Errorf("reading the password: %w", err)
		}
		auth = authn.FromConfig(authn.AuthConfig{Username: *username, Password: strings.TrimRight(string(password), "\r\n")})
	}
	return push(ctx, *folder, auth, out)
}

// push pushes the OCI archives of a release under the names that they have. The chart is last: who
// finds it finds its images.
func push(ctx context.Context, folder string, auth authn.Authenticator, out io.Writer) error {
	if _, err := os.Stat(filepath.Join(folder, sums)); err != nil {
		return fmt.Errorf("%s has no release; run make release first: %w", folder, err)
	}
	images, err := filepath.Glob(filepath.Join(folder, "*-image.tar"))
	if err != nil {
		return err
	}
	charts, err := filepath.Glob(filepath.Join(folder, "*-chart.tar"))
	if err != nil {
		return err
	}
	for _, path := range slices.Concat(images, charts) {
		if err := pushArchive(ctx, path, auth, out); err != nil {
			return err
		}
	}
	return nil
}

func pushArchive(ctx context.Context, path string, auth authn.Authenticator, out io.Writer) error {
	unpacked, err := os.MkdirTemp("", "kube-queue-push-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(unpacked)
	top, listed, err := open(path, unpacked)
	if err != nil {
		return err
	}
	tag, err := name.NewTag(listed.Annotations[oci.NameAnnotation])
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if tag.RegistryStr() == placeholder {
		return fmt.Errorf("%s is a placeholder: make the release for a registry, such as make release VERSION=v1.2.3 REGISTRY=ghcr.io/owner", placeholder)
	}
	fmt.Fprintf(out, "pushing %s\n", tag)
	options := []remote.Option{remote.WithContext(ctx), remote.WithAuth(auth)}
	if listed.MediaType.IsIndex() {
		index, err := top.ImageIndex(listed.Digest)
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		err = remote.WriteIndex(tag, index, options...)
		if err != nil {
			return fmt.Errorf("pushing %s: %w", tag, err)
		}
	} else {
		image, err := top.Image(listed.Digest)
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		if err := remote.Write(tag, image, options...); err != nil {
			return fmt.Errorf("pushing %s: %w", tag, err)
		}
	}
	fmt.Fprintf(out, "pushed  %s@%s\n", tag.Context(), listed.Digest)
	return nil
}

// open unpacks an archive into a folder, and returns its layout and the only entry of its index.
func open(path, folder string) (v1.ImageIndex, v1.Descriptor, error) {
	fail := func(err error) (v1.ImageIndex, v1.Descriptor, error) {
		return nil, v1.Descriptor{}, fmt.Errorf("%s: %w", path, err)
	}
	if err := unpack(path, folder); err != nil {
		return fail(err)
	}
	top, err := layout.ImageIndexFromPath(folder)
	if err != nil {
		return fail(err)
	}
	manifest, err := top.IndexManifest()
	if err != nil {
		return fail(err)
	}
	if len(manifest.Manifests) != 1 {
		return fail(fmt.Errorf("its index lists %d manifests, not 1", len(manifest.Manifests)))
	}
	return top, manifest.Manifests[0], nil
}

// unpack writes the files of a tar archive, which has no links.
func unpack(path, folder string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	root, err := os.OpenRoot(folder)
	if err != nil {
		return err
	}
	defer root.Close()
	for r := tar.NewReader(file); ; {
		header, err := r.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if header.Typeflag == tar.TypeDir {
			err = root.MkdirAll(filepath.Clean(header.Name), 0o755)
		} else {
			err = unpackFile(root, header.Name, r)
		}
		if err != nil {
			return err
		}
	}
}

func unpackFile(root *os.Root, name string, data io.Reader) error {
	file, err := root.Create(name)
	if err != nil {
		return err
	}
	_, err = io.Copy(file, data)
	return errors.Join(err, file.Close())
}

// recorded is what images has recorded in an archive.
type recorded struct {
	name, digest, revision string
	created                time.Time
}

// imageInfo reads the annotations of an image archive.
func imageInfo(path string) (recorded, error) {
	folder, err := os.MkdirTemp("", "kube-queue-image-")
	if err != nil {
		return recorded{}, err
	}
	defer os.RemoveAll(folder)
	top, listed, err := open(path, folder)
	if err != nil {
		return recorded{}, err
	}
	index, err := top.ImageIndex(listed.Digest)
	if err != nil {
		return recorded{}, fmt.Errorf("%s: %w", path, err)
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		return recorded{}, fmt.Errorf("%s: %w", path, err)
	}
	const prefix = "org.opencontainers.image."
	created, err := time.Parse(time.RFC3339, manifest.Annotations[prefix+"created"])
	if err != nil {
		return recorded{}, fmt.Errorf("%s: time of the image: %w", path, err)
	}
	return recorded{listed.Annotations[oci.NameAnnotation], listed.Digest.String(), manifest.Annotations[prefix+"revision"], created}, nil
}
