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
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
)

const sums = "SHA256SUMS"

// file is a file of the output. What describes it in the notes.
type file struct {
	Name, What string
	data       []byte
}

func (f file) sum() string {
	digest := sha256.Sum256(f.data)
	return hex.EncodeToString(digest[:])
}

// published is an image or the chart, with the digest that a registry shows.
type published struct{ What, Name, Digest string }

// results collects what a run makes before it is written.
type results struct {
	files     []file
	published []published
}

func (r *results) add(name, what string, data []byte) file {
	added := file{name, what, data}
	r.files = append(r.files, added)
	slices.SortFunc(r.files, func(a, b file) int { return cmp.Compare(a.Name, b.Name) })
	return added
}

// checkOutput refuses to replace a folder with files that no earlier run has listed.
func checkOutput(folder string) error {
	entries, err := os.ReadDir(folder)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("reading the output of an earlier run: %w", err)
	}
	// Without this list, no file is from an earlier run.
	list, _ := os.ReadFile(filepath.Join(folder, sums))
	for _, entry := range entries {
		if entry.Name() != sums && !strings.Contains(string(list), "  "+entry.Name()+"\n") {
			return fmt.Errorf("%s has %s, which is in no %s of an earlier run: remove it, or set another --output", folder, entry.Name(), sums)
		}
	}
	return nil
}

// write writes all files and their checksums to a new folder, and replaces the one of an earlier
// run with it.
func (r *results) write(ctx context.Context, folder string, out io.Writer) error {
	if err := os.MkdirAll(filepath.Dir(folder), 0o755); err != nil {
		return fmt.Errorf("creating the output folder: %w", err)
	}
	scratch, err := os.MkdirTemp(filepath.Dir(folder), ".unfinished-")
	if err != nil {
		return fmt.Errorf("creating the output folder: %w", err)
	}
	defer os.RemoveAll(scratch)
	complete := filepath.Join(scratch, "complete")
	if err := os.Mkdir(complete, 0o755); err != nil {
		return fmt.Errorf("creating the output folder: %w", err)
	}
	var list strings.Builder
	for _, f := range r.files {
		fmt.Fprintf(&list, "%s  %s\n", f.sum(), f.Name)
	}
	for _, f := range append(r.files, file{Name: sums, data: []byte(list.String())}) {
		if err := os.WriteFile(filepath.Join(complete, f.Name), f.data, 0o644); err != nil {
			return fmt.Errorf("writing the output: %w", err)
		}
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := replace(folder, complete); err != nil {
		return err
	}
	return r.report(folder, out)
}

// replace renames a complete folder into place. The earlier one is removed afterwards.
func replace(folder, complete string) error {
	earlier := complete + ".earlier"
	err := os.Rename(folder, earlier)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("moving the earlier output away: %w", err)
	}
	if err := os.Rename(complete, folder); err != nil {
		return fmt.Errorf("renaming the output: %w", errors.Join(err, os.Rename(earlier, folder)))
	}
	return nil
}

func (r *results) report(folder string, out io.Writer) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "\nFILE\tSIZE\tSHA-256")
	for _, f := range r.files {
		fmt.Fprintf(table, "%s\t%d kB\t%s\n", f.Name, (len(f.data)+999)/1000, f.sum())
	}
	fmt.Fprintln(table, "\nIMAGE OR CHART\tDIGEST")
	for _, p := range r.published {
		fmt.Fprintf(table, "%s\t%s\n", p.Name, p.Digest)
	}
	fmt.Fprintf(table, "\nThe files are in %s.\nTo verify: cd %s && sha256sum -c %s\nTo load images: docs/development/images.md#load\n", folder, folder, sums)
	return table.Flush()
}
