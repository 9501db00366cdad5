package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path"
	"strings"

	"kube-queue.dev/kube-queue/hack/images/internal/oci"
)

const (
	// plugin is the kubectl plugin, and completionScript its completion script for kubectl, in the source.
	plugin           = "kubectl-kube_queue"
	completionScript = "pkg/plugin/command/kubectl_complete-kube_queue"
)

// release is a release that is being made.
type release struct {
	*options
	log io.Writer
	results
	section section
	chart   metadata
	// archives are the archives of the plugin.
	archives []archive
}

// makeImages makes the images, and the binaries in them.
func (r *release) makeImages(ctx context.Context, out io.Writer) error {
	if err := checkOutput(r.output); err != nil {
		return err
	}
	if err := r.addPrograms(ctx); err != nil {
		return err
	}
	return r.write(ctx, r.output, out)
}

// make makes everything that a user installs from.
func (r *release) make(ctx context.Context, out io.Writer) error {
	if err := r.prepare(); err != nil || r.checkOnly {
		return err
	}
	if _, err := os.Stat(r.helm); err != nil {
		return fmt.Errorf("helm is not built: run make release, which builds it: %w", err)
	}
	if !r.chartOnly {
		if err := r.addPrograms(ctx); err != nil {
			return err
		}
	}
	fmt.Fprintln(r.log, "release: packing the chart and rendering manifests")
	if err := r.addChart(ctx); err != nil {
		return err
	}
	if err := r.addNotes(); err != nil {
		return err
	}
	return r.write(ctx, r.output, out)
}

// prepare checks everything that can be checked before the long build.
func (r *release) prepare() error {
	changelog, err := r.read(changelogFile)
	if err != nil {
		return err
	}
	if r.section, err = sectionOf(string(changelog), r.version); err != nil {
		return err
	}
	if r.chart, err = r.checkChart(); err != nil {
		return err
	}
	return checkOutput(r.output)
}

// addPrograms builds the programs, and adds the images, the archives and the bills of materials.
func (r *release) addPrograms(ctx context.Context) error {
	all, err := r.build(ctx)
	if err != nil {
		return err
	}
	for _, program := range imaged {
		fmt.Fprintf(r.log, "release: packing the image of %s\n", program)
		data, digest, err := r.imageArchive(program, all)
		if err != nil {
			return fmt.Errorf("packing the image of %s: %w", program, err)
		}
		r.add(program+"-"+r.version+"-image.tar", "image of "+program, data)
		r.published = append(r.published, published{"image of " + program, r.imageName(program), digest.String()})
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	licence, err := r.read("LICENSE")
	if err != nil {
		return err
	}
	for _, b := range all {
		fmt.Fprintf(r.log, "release: packing %s for %s\n", b.program, b.platform)
		if err := r.addProgram(b, oci.File{Name: "LICENSE", Data: licence, Mode: 0o644}); err != nil {
			return fmt.Errorf("packing %s for %s: %w", b.program, b.platform, err)
		}
	}
	return ctx.Err()
}

// addProgram adds the archive of a program and its bill of materials.
func (r *release) addProgram(b built, files ...oci.File) error {
	files = append(files, oci.File{Name: b.program, Data: b.binary, Mode: 0o755})
	if b.program == plugin {
		script, err := r.read(completionScript)
		if err != nil {
			return err
		}
		files = append(files, oci.File{Name: path.Base(completionScript), Data: script, Mode: 0o755})
	}
	packed, err := oci.TarGzip(r.created, files)
	if err != nil {
		return err
	}
	system, arch, _ := strings.Cut(b.platform, "/")
	name := strings.Join([]string{b.program, r.version, system, arch}, "-")
	added := r.add(name+".tar.gz", b.program+" for "+b.platform, packed)
	r.add(name+".cdx.json", "bill of materials of "+b.program+" for "+b.platform, b.bom)
	if b.program == plugin {
		r.archives = append(r.archives, archive{system, arch, added.Name, added.sum()})
	}
	return nil
}
