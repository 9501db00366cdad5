package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// options say what is built. A program NAME is the package cmd/NAME of the module in
// source.
type options struct {
	source     string
	output     string
	version    string
	revision   string
	repository string
	programs   []string
	platforms  []platform
	created    time.Time

	// As given: what is empty is found by complete.
	createdText string
}

type platform struct{ os, arch string }

func (p platform) String() string { return p.os + "/" + p.arch }

// file is how the platform stands in the name of a file.
func (p platform) file() string { return p.os + "-" + p.arch }

func defaults() *options {
	return &options{
		source: ".",
		output: "bin/images",
		// What Kubernetes takes a name without a host for.
		repository: "docker.io/kube-queue",
		programs:   []string{"kube-queue-controller", "job-extensions"},
		platforms:  []platform{{"linux", "amd64"}, {"linux", "arm64"}},
	}
}

func (o *options) parse(args []string, usage io.Writer) error {
	programs, platforms := strings.Join(o.programs, ","), "linux/amd64,linux/arm64"
	fs := flag.NewFlagSet("images", flag.ContinueOnError)
	fs.SetOutput(usage)
	fs.StringVar(&o.source, "source", o.source, "`folder` of the module with the programs")
	fs.StringVar(&o.output, "output", o.output, "`folder` to write to; what an earlier run wrote there is replaced")
	fs.StringVar(&o.version, "version", o.version, "version that the programs tell and the images are tagged with; git describe if empty")
	fs.StringVar(&o.revision, "revision", o.revision, "commit to name in the images; the one checked out if empty")
	fs.StringVar(&o.createdText, "created", o.createdText,
		"time of everything, as 2006-01-02T15:04:05Z or in seconds since 1970; SOURCE_DATE_EPOCH if empty, else the commit's")
	fs.StringVar(&o.repository, "repository", o.repository, "what the images' names begin with")
	fs.StringVar(&programs, "programs", programs, "programs, parted by commas")
	fs.StringVar(&platforms, "platforms", platforms, "platforms, parted by commas")
	if err := fs.Parse(args); err != nil {
		return err
	}
	if fs.NArg() > 0 {
		return fmt.Errorf("%q is no flag; see --help", fs.Arg(0))
	}
	o.programs = split(programs)
	o.platforms = nil
	for _, text := range split(platforms) {
		system, arch, ok := strings.Cut(text, "/")
		if !ok || system != "linux" || (arch != "amd64" && arch != "arm64") {
			return fmt.Errorf("--platforms: %q is not built; give linux/amd64, linux/arm64 or both", text)
		}
		o.platforms = append(o.platforms, platform{system, arch})
	}
	if len(o.programs) == 0 || len(o.platforms) == 0 {
		return errors.New("--programs and --platforms must each name one at least")
	}
	return nil
}

// split parts a list, drops what is named twice and sorts, so that the order of the
// caller does not change the bytes.
func split(list string) []string {
	items := strings.FieldsFunc(list, func(r rune) bool { return r == ',' || r == ' ' })
	slices.Sort(items)
	return slices.Compact(items)
}

var (
	aTag        = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}$`)
	aRepository = regexp.MustCompile(`^[a-z0-9.-]+(:[0-9]+)?(/[a-z0-9]+([._-]+[a-z0-9]+)*)*$`)
)

// complete finds what the flags left open, and refuses what cannot work before the long
// build rather than after it.
func (o *options) complete(ctx context.Context, lookupEnv func(string) (string, bool)) error {
	var err error
	if o.source, err = filepath.Abs(o.source); err != nil {
		return err
	}
	for _, program := range o.programs {
		if info, err := os.Stat(filepath.Join(o.source, "cmd", program)); err != nil || !info.IsDir() {
			return fmt.Errorf("--programs: there is no program %q, since %s has no folder cmd/%s", program, o.source, program)
		}
	}
	if o.version == "" {
		if o.version, err = o.git(ctx, "describe", "--tags", "--always", "--dirty", "--abbrev=12"); err != nil {
			return fmt.Errorf("no version: give --version, or build in a git clone: %w", err)
		}
	}
	if !aTag.MatchString(o.version) {
		return fmt.Errorf("--version: %q cannot tag an image: only letters, digits, '_', '.' and '-' may stand there, at most 128", o.version)
	}
	if !aRepository.MatchString(o.repository) {
		return fmt.Errorf("--repository: %q is not the name of a repository, such as registry.example.com/kube-queue", o.repository)
	}
	if o.revision == "" {
		// Without git an image names no commit, which harms nobody.
		o.revision, _ = o.git(ctx, "rev-parse", "HEAD")
	}
	return o.completeCreated(ctx, lookupEnv)
}

func (o *options) completeCreated(ctx context.Context, lookupEnv func(string) (string, bool)) error {
	text, from := o.createdText, "--created"
	if text == "" {
		text, _ = lookupEnv("SOURCE_DATE_EPOCH")
		from = "SOURCE_DATE_EPOCH"
	}
	if text == "" {
		var err error
		if text, err = o.git(ctx, "log", "-1", "--format=%ct"); err != nil {
			return fmt.Errorf("no time to give the files: give --created or SOURCE_DATE_EPOCH, or build in a git clone: %w", err)
		}
		from = "the commit's time"
	}
	if seconds, err := strconv.ParseInt(text, 10, 64); err == nil {
		o.created = time.Unix(seconds, 0).UTC()
	} else if o.created, err = time.Parse(time.RFC3339, text); err != nil {
		return fmt.Errorf("%s: %q is neither a time as 2006-01-02T15:04:05Z nor seconds since 1970", from, text)
	}
	// A tar header holds no more without an extension, and no time before 1970.
	if o.created.Unix() < 0 || o.created.Unix() >= 1<<33 {
		return fmt.Errorf("%s: %q is outside of what an archive can hold", from, text)
	}
	o.created = o.created.UTC().Truncate(time.Second)
	return nil
}

func (o *options) git(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "git", args...)
	cmd.Dir = o.source
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("git %s in %s: %w: %s", args[0], o.source, err, strings.TrimSpace(errs.String()))
	}
	return strings.TrimSpace(string(out)), nil
}
