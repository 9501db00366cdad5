package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"kube-queue.dev/kube-queue/hack/images/internal/oci"
)

// product is an output file. digest is the digest of the image if the file is its archive.
type product struct {
	name   string
	data   []byte
	mode   os.FileMode
	image  string
	digest v1.Hash
}

// produce builds everything and then writes it.
func produce(ctx context.Context, opts *options, log io.Writer) ([]product, error) {
	b, err := newBuilder(ctx, opts.source, log)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(opts.output, 0o755); err != nil {
		return nil, fmt.Errorf("creating the output folder: %w", err)
	}
	// In the output folder, so that files can be renamed into place.
	scratch, err := os.MkdirTemp(opts.output, ".unfinished-")
	if err != nil {
		return nil, fmt.Errorf("creating a build folder: %w", err)
	}
	defer os.RemoveAll(scratch)

	var products []product
	programs := map[string][]built{}
	for _, on := range opts.platforms {
		folder := filepath.Join(scratch, on.file())
		if err := b.build(ctx, folder, on, opts); err != nil {
			return nil, err
		}
		folders, err := b.moduleFolders(ctx, on, opts.programs)
		if err != nil {
			return nil, err
		}
		for _, program := range opts.programs {
			binary, err := os.ReadFile(filepath.Join(folder, program))
			if err != nil {
				return nil, fmt.Errorf("reading the built program: %w", err)
			}
			bom, err := billOfMaterials(program, on, binary, opts, folders)
			if err != nil {
				return nil, err
			}
			if opts.hasImage(program, on) {
				var done built
				err = b.progress(fmt.Sprintf("packing %s for %s", program, on), func() error {
					done, err = pack(program, on, binary, bom, opts)
					return err
				})
				if err != nil {
					return nil, err
				}
				programs[program] = append(programs[program], done)
			}
			name := program + "-" + on.file()
			products = append(products, product{name: name, data: binary, mode: 0o755},
				product{name: name + ".cdx.json", data: bom, mode: 0o644})
		}
	}
	for _, program := range opts.images {
		archived, err := archiveOf(program, programs[program], opts)
		if err != nil {
			return nil, err
		}
		products = append(products, archived)
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return products, write(opts.output, scratch, products)
}

func pack(program string, on platform, binary, bom []byte, opts *options) (built, error) {
	notes := annotations(program, opts)
	img, err := image(program, on, binary, opts, notes)
	if err != nil {
		return built{}, err
	}
	artifact, err := attach(bom, img, notes)
	if err != nil {
		return built{}, err
	}
	return built{on: on, image: img, bom: artifact}, nil
}

func archiveOf(program string, all []built, opts *options) (product, error) {
	name := opts.repository + "/" + program + ":" + opts.version
	index, err := indexOf(all, annotations(program, opts))
	if err != nil {
		return product{}, fmt.Errorf("writing the index of %s: %w", name, err)
	}
	data, err := archive(all, index, name, opts.version, opts.created)
	if err != nil {
		return product{}, err
	}
	digest := oci.Describe(types.OCIImageIndex, index).Digest
	return product{name: program + ".tar", data: data, mode: 0o644, image: name, digest: digest}, nil
}

// annotations are the annotations and labels of an image. The source is not set, because the
// repository has no public address.
func annotations(program string, opts *options) map[string]string {
	const prefix = "org.opencontainers.image."
	notes := map[string]string{
		prefix + "title":   program,
		prefix + "version": opts.version,
		prefix + "created": opts.created.Format("2006-01-02T15:04:05Z"),
	}
	if opts.revision != "" {
		notes[prefix+"revision"] = opts.revision
	}
	var names []string
	if found := licencesIn(opts.source); found != nil {
		for _, licence := range *found {
			names = append(names, licence.License.ID)
		}
		notes[prefix+"licenses"] = strings.Join(names, " AND ")
	}
	return notes
}
