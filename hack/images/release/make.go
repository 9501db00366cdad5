package main

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"kube-queue.dev/kube-queue/hack/images/internal/oci"
)

const (
	sums = "SHA256SUMS"
	// notesFile and upgradeFile are the release notes and the upgrade notes.
	notesFile   = "RELEASE-NOTES.md"
	upgradeFile = "UPGRADE.md"
)

// product is a file of the release. what describes it in the notes.
type product struct {
	name, what string
	data       []byte
}

// published is an image or the chart, with the digest that a registry shows.
type published struct{ what, name, digest string }

// release is what is collected before it is written.
type release struct {
	*options
	section  section
	chart    metadata
	rendered []variant
	built    []string
	// created and revision are those that images recorded.
	created   time.Time
	revision  string
	products  []product
	published []published
}

// run makes the release in a temporary folder and renames it.
func (o *options) run(ctx context.Context, out, log io.Writer) error {
	r, err := o.prepare(ctx)
	if err != nil || o.checkOnly {
		return err
	}
	if err := o.checkPrograms(); err != nil {
		return err
	}
	parent := filepath.Dir(o.output)
	if err := os.MkdirAll(parent, 0o755); err != nil {
		return fmt.Errorf("creating the folder of the release: %w", err)
	}
	scratch, err := os.MkdirTemp(parent, ".unfinished-release-")
	if err != nil {
		return fmt.Errorf("creating a build folder: %w", err)
	}
	defer os.RemoveAll(scratch)
	for _, step := range []struct {
		what string
		do   func(context.Context, string, io.Writer) error
	}{
		{"building programs and images", r.build},
		{"packing the chart and rendering manifests", r.pack},
		{"writing notes and checksums", r.write},
	} {
		fmt.Fprintf(log, "release: %s\n", step.what)
		if err := step.do(ctx, scratch, log); err != nil {
			return err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	if err := replace(o.output, filepath.Join(scratch, "release")); err != nil {
		return err
	}
	return r.report(out)
}

// prepare checks everything that can be checked before the long build.
func (o *options) prepare(ctx context.Context) (*release, error) {
	r := &release{options: o}
	changelog, err := o.read(changelogFile)
	if err != nil {
		return nil, err
	}
	if r.section, err = sectionOf(changelog, o.version); err != nil {
		return nil, err
	}
	if r.chart, err = o.checkChart(); err != nil {
		return nil, err
	}
	if r.rendered, err = o.variants(); err != nil {
		return nil, err
	}
	if r.built, err = o.programs(); err != nil {
		return nil, err
	}
	if err := isRelease(o.output); err != nil {
		return nil, err
	}
	return r, o.checkTree(ctx)
}

// build runs images, and takes over what it has built.
func (r *release) build(ctx context.Context, scratch string, log io.Writer) error {
	if r.chartOnly {
		seconds, err := strconv.ParseInt(r.options.created, 10, 64)
		if err != nil || r.options.revision == "" {
			return errors.New("--chart-only needs --created in seconds since 1970, and --revision")
		}
		r.created, r.revision = time.Unix(seconds, 0).UTC(), r.options.revision
		return nil
	}
	folder := filepath.Join(scratch, "images")
	args := []string{"--source", r.source, "--output", folder, "--version", r.version, "--repository", r.imageRepository(),
		"--programs", strings.Join(r.built, ","), "--images", strings.Join(imaged, ","), "--platforms", r.platforms,
		"--revision", r.options.revision, "--created", r.options.created}
	cmd := interruptible(ctx, r.images, args...)
	cmd.Stderr = log
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("building programs and images: %w", err)
	}
	licence, err := r.read("LICENSE")
	if err != nil {
		return err
	}
	for _, program := range imaged {
		if err := r.takeImage(filepath.Join(folder, program+".tar"), program); err != nil {
			return err
		}
	}
	for _, program := range r.built {
		for platform := range strings.SplitSeq(r.platforms, ",") {
			built := program + "-" + strings.ReplaceAll(strings.TrimSpace(platform), "/", "-")
			fmt.Fprintf(log, "release: packing %s for %s\n", program, platform)
			if err := r.takeProgram(folder, built, program, platform, licence); err != nil {
				return err
			}
		}
	}
	return nil
}

func (r *release) takeImage(path, program string) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("reading an image: %w", err)
	}
	recorded, err := imageInfo(path)
	if err != nil {
		return err
	}
	r.created, r.revision = recorded.created, recorded.revision
	r.add(fmt.Sprintf("%s-%s-image.tar", program, r.version), "image of "+program, data)
	r.published = append(r.published, published{"image of " + program, recorded.name, recorded.digest})
	return nil
}

func (r *release) takeProgram(folder, built, program, platform, licence string) error {
	binary, err := os.ReadFile(filepath.Join(folder, built))
	if err != nil {
		return fmt.Errorf("reading a program: %w", err)
	}
	bom, err := os.ReadFile(filepath.Join(folder, built+".cdx.json"))
	if err != nil {
		return fmt.Errorf("reading a bill of materials: %w", err)
	}
	files := []oci.File{{Name: "LICENSE", Data: []byte(licence), Mode: 0o644}, {Name: program, Data: binary, Mode: 0o755}}
	if program == plugin {
		script, err := r.read(completionScript)
		if err != nil {
			return err
		}
		files = append(files, oci.File{Name: path.Base(completionScript), Data: []byte(script), Mode: 0o755})
	}
	archive, err := tarGzip(r.created, files)
	if err != nil {
		return fmt.Errorf("packing %s: %w", built, err)
	}
	name := strings.Replace(built, program, program+"-"+r.version, 1)
	r.add(name+".tar.gz", program+" for "+platform, archive)
	r.add(name+".cdx.json", "bill of materials of "+program+" for "+platform, bom)
	return nil
}

// pack makes the chart, and renders the manifests from it.
func (r *release) pack(ctx context.Context, scratch string, _ io.Writer) error {
	chart, err := r.chartPackage(r.created)
	if err != nil {
		return err
	}
	packed := fmt.Sprintf("%s-%s.tgz", chartName, r.version)
	r.add(packed, "the chart", chart)
	archive, digest, err := r.chartArchive(r.chart, chart, r.created, r.revision)
	if err != nil {
		return fmt.Errorf("packing the chart: %w", err)
	}
	r.add(fmt.Sprintf("%s-%s-chart.tar", chartName, r.version), "the chart as an OCI archive", archive)
	r.published = append(r.published, published{"chart", r.chartRepository() + ":" + r.version, digest.String()})

	path := filepath.Join(scratch, packed)
	if err := os.WriteFile(path, chart, 0o644); err != nil {
		return fmt.Errorf("writing the chart: %w", err)
	}
	for _, v := range r.rendered {
		text, err := r.manifests(ctx, v, path, scratch)
		if err != nil {
			return err
		}
		r.add(v.File, "all manifests, for "+v.For, text)
	}
	return nil
}

func (r *release) add(name, what string, data []byte) {
	r.products = append(r.products, product{name, what, data})
}

// write writes the files, their checksums last.
func (r *release) write(_ context.Context, scratch string, _ io.Writer) error {
	r.krew()
	slices.SortFunc(r.products, func(a, b product) int { return cmp.Compare(a.name, b.name) })
	r.add(upgradeFile, "what to do before an upgrade", []byte(r.upgradeNotes()))
	r.add(notesFile, "", []byte(r.releaseNotes()))
	slices.SortFunc(r.products, func(a, b product) int { return cmp.Compare(a.name, b.name) })
	folder := filepath.Join(scratch, "release")
	if err := os.Mkdir(folder, 0o755); err != nil {
		return err
	}
	var list strings.Builder
	for _, p := range r.products {
		fmt.Fprintf(&list, "%s  %s\n", sum(p.data), p.name)
	}
	for _, p := range append(r.products, product{name: sums, data: []byte(list.String())}) {
		if err := os.WriteFile(filepath.Join(folder, p.name), p.data, 0o644); err != nil {
			return fmt.Errorf("writing the release: %w", err)
		}
	}
	return nil
}

func sum(data []byte) string {
	digest := sha256.Sum256(data)
	return hex.EncodeToString(digest[:])
}

// isRelease refuses to replace a folder that no release has written.
func isRelease(folder string) error {
	entries, err := os.ReadDir(folder)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading the folder of an earlier release: %w", err)
	}
	if len(entries) > 0 && !slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return e.Name() == sums }) {
		return fmt.Errorf("%s has files, but no %s of an earlier release: remove it, or set another --output", folder, sums)
	}
	return nil
}

// replace renames a complete release into place. The earlier one is removed afterwards.
func replace(folder, complete string) error {
	earlier := complete + ".earlier"
	err := os.Rename(folder, earlier)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("moving the earlier release away: %w", err)
	}
	if err := os.Rename(complete, folder); err != nil {
		return fmt.Errorf("renaming the release: %w", errors.Join(err, os.Rename(earlier, folder)))
	}
	return nil
}

// report prints what was made.
func (r *release) report(out io.Writer) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "\nFILE\tSIZE\tSHA-256")
	for _, p := range r.products {
		fmt.Fprintf(table, "%s\t%d kB\t%s\n", p.name, (len(p.data)+999)/1000, sum(p.data)[:12])
	}
	fmt.Fprintln(table, "\nIMAGE OR CHART\tDIGEST")
	for _, p := range r.published {
		fmt.Fprintf(table, "%s\t%s\n", p.name, p.digest)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(out, "\nRelease %s is in %s.\nTo verify: cd %s && sha256sum -c %s\n", r.tag, r.output, r.output, sums)
	return err
}
