package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"kube-queue.dev/kube-queue/hack/images/internal/oci"
)

// push pushes the OCI archives of a release under their own names. It pushes the chart last, so that its images are
// already there.
func push(ctx context.Context, args []string, in io.Reader, out, log io.Writer) error {
	fs := flag.NewFlagSet("release push", flag.ContinueOnError)
	fs.SetOutput(log)
	folder := fs.String("folder", "bin/release", "`folder` of the release")
	username := fs.String("username", "", "user of the registry; empty for a registry without users")
	fromStdin := fs.Bool("password-stdin", false, "read the password of the user from standard input")
	if err := parseAll(fs, args); err != nil {
		return err
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
		auth = &authn.Basic{Username: *username, Password: strings.TrimRight(string(password), "\r\n")}
	}
	if _, err := os.Stat(filepath.Join(*folder, sums)); err != nil {
		return fmt.Errorf("%s has no release; run make release first: %w", *folder, err)
	}
	for _, pattern := range []string{"*-image.tar", "*-chart.tar"} {
		archives, err := filepath.Glob(filepath.Join(*folder, pattern))
		if err != nil {
			return err
		}
		for _, path := range archives {
			if err := pushArchive(ctx, path, auth, out); err != nil {
				return fmt.Errorf("pushing %s: %w", path, err)
			}
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
	listed, content, err := open(ctx, path, unpacked)
	if err != nil {
		return err
	}
	tag, err := name.NewTag(listed.Annotations[oci.NameAnnotation])
	if err != nil {
		return err
	}
	if tag.RegistryStr() == placeholder {
		return fmt.Errorf("%s is a placeholder: make the release for a registry, such as make release VERSION=v1.2.3 REGISTRY=ghcr.io/owner", placeholder)
	}
	fmt.Fprintf(out, "pushing %s\n", tag)
	if err := remote.Push(tag, content, remote.WithContext(ctx), remote.WithAuth(auth)); err != nil {
		return fmt.Errorf("%s: %w", tag, err)
	}
	fmt.Fprintf(out, "pushed  %s@%s\n", tag.Context(), listed.Digest)
	return nil
}

// open unpacks an archive into a folder, and returns the only entry of its index and the content of this entry.
func open(ctx context.Context, path, folder string) (v1.Descriptor, remote.Taggable, error) {
	if err := unpack(ctx, path, folder); err != nil {
		return v1.Descriptor{}, nil, err
	}
	top, err := layout.ImageIndexFromPath(folder)
	if err != nil {
		return v1.Descriptor{}, nil, err
	}
	manifest, err := top.IndexManifest()
	if err != nil {
		return v1.Descriptor{}, nil, err
	}
	if len(manifest.Manifests) != 1 {
		return v1.Descriptor{}, nil, fmt.Errorf("its index lists %d manifests, not 1", len(manifest.Manifests))
	}
	listed := manifest.Manifests[0]
	if listed.MediaType.IsIndex() {
		index, err := top.ImageIndex(listed.Digest)
		return listed, index, err
	}
	image, err := top.Image(listed.Digest)
	return listed, image, err
}

func unpack(ctx context.Context, path, folder string) error {
	out, err := exec.CommandContext(ctx, "tar", "-xf", path, "-C", folder).CombinedOutput()
	if err != nil {
		return fmt.Errorf("tar: %w\n%s", err, out)
	}
	return nil
}
