package main

import (
	"bytes"
	"cmp"
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

// write renames the products once all of them are on disk. It removes the checksum list first
// and writes it last: if the list exists, all listed files are complete and of one run.
func write(folder, scratch string, products []product) error {
	slices.SortFunc(products, func(a, b product) int { return cmp.Compare(a.name, b.name) })
	var list bytes.Buffer
	for _, p := range products {
		if err := os.WriteFile(filepath.Join(scratch, p.name), p.data, p.mode); err != nil {
			return fmt.Errorf("writing %s: %w", p.name, err)
		}
		// Set the mode regardless of the umask.
		if err := os.Chmod(filepath.Join(scratch, p.name), p.mode); err != nil {
			return err
		}
		fmt.Fprintf(&list, "%s  %s\n", sum(p.data), p.name)
	}
	if err := os.WriteFile(filepath.Join(scratch, sums), list.Bytes(), 0o644); err != nil {
		return fmt.Errorf("writing %s: %w", sums, err)
	}
	if err := removeEarlier(folder); err != nil {
		return err
	}
	for _, p := range products {
		if err := os.Rename(filepath.Join(scratch, p.name), filepath.Join(folder, p.name)); err != nil {
			return fmt.Errorf("renaming a finished file: %w", err)
		}
	}
	if err := os.Rename(filepath.Join(scratch, sums), filepath.Join(folder, sums)); err != nil {
		return fmt.Errorf("renaming a finished file: %w", err)
	}
	return nil
}

// removeEarlier removes only the files that an earlier run has listed.
func removeEarlier(folder string) error {
	list, err := os.ReadFile(filepath.Join(folder, sums))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading the file list of an earlier run: %w", err)
	}
	if err := os.Remove(filepath.Join(folder, sums)); err != nil {
		return fmt.Errorf("removing the files of an earlier run: %w", err)
	}
	for line := range strings.Lines(string(list)) {
		_, name, ok := strings.Cut(strings.TrimSpace(line), "  ")
		if !ok || name != filepath.Base(name) {
			continue
		}
		if err := os.Remove(filepath.Join(folder, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("removing the files of an earlier run: %w", err)
		}
	}
	return nil
}

func sum(data []byte) string {
	digest := sha256.Sum256(data)
	return hex.EncodeToString(digest[:])
}

// report prints the output files and how to load them.
func report(out io.Writer, opts *options, products []product) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "\nFILE\tSIZE\tSHA-256")
	for _, p := range products {
		fmt.Fprintf(table, "%s\t%d kB\t%s\n", filepath.Join(opts.output, p.name), (len(p.data)+999)/1000, sum(p.data))
	}
	fmt.Fprintln(table, "\nIMAGE\tDIGEST")
	for _, p := range products {
		if p.image != "" {
			fmt.Fprintf(table, "%s\t%s\n", p.image, p.digest)
		}
	}
	if err := table.Flush(); err != nil {
		return err
	}
	for _, p := range products {
		if p.image == "" {
			continue
		}
		path := filepath.Join(opts.output, p.name)
		fmt.Fprintf(out, "\nTo load %s, run one of\n", p.name)
		for _, command := range []string{
			"ctr -n k8s.io images import " + path,
			"kind load image-archive " + path,
			"podman load -i " + path,
			"docker load -i " + path,
			"skopeo copy --all oci-archive:" + path + " docker://REGISTRY/" + strings.TrimPrefix(p.image, "docker.io/"),
		} {
			fmt.Fprintf(out, "  %s\n", command)
		}
	}
	_, err := fmt.Fprintf(out, "\nTo verify: cd %s && sha256sum -c %s\n", opts.output, sums)
	return err
}
