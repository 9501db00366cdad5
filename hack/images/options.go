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

// options are the settings of a build. The program NAME is the package cmd/NAME of the module
// in source.
type options struct {
	source     string
	output     string
	version    string
	revision   string
	repository string
	programs   []string
	// images are the programs that get an image, for the platforms with linux.
	images    []string
	platforms []platform
	created   time.Time

	// As given by the user; complete fills in empty values.
	createdText string
}

type platform struct{ os, arch string }

func (p platform) String() string { return p.os + "/" + p.arch }

// hasImage reports whether a program gets an image for a platform.
func (o *options) hasImage(program string, on platform) bool {
	return on.os == "linux" && slices.Contains(o.images, program)
}

// file returns the platform in the form used in file names.
func (p platform) file() string { return p.os + "-" + p.arch }

func defaults() *options {
	return &options{
		source: ".",
		output: "bin/images",
		// The prefix that Kubernetes assumes for a name without a host.
		repository: "docker.io/kube-queue",
		programs:   []string{"kube-queue-controller", "job-extensions"},
		platforms:  []platform{{"linux", "amd64"}, {"linux", "arm64"}},
	}
}

func (o *options) parse(args []string, usage io.Writer) error {
	programs, platforms, images := strings.Join(o.programs, ","), "linux/amd64,linux/arm64", ""
	fs := flag.NewFlagSet("images", flag.ContinueOnError)
	fs.SetOutput(usage)
	fs.StringVar(&o.source, "source", o.source, "`folder` of the module with the programs")
	fs.StringVar(&o.output, "output", o.output, "output `folder`; the files of an earlier run in it are replaced")
	fs.StringVar(&o.version, "version", o.version, "version of the programs and tag of the images; git describe if empty")
	fs.StringVar(&o.revision, "revision", o.revision, "commit to record in the images; the one checked out if empty")
	fs.StringVar(&o.createdText, "created", o.createdText,
		"time of all files, such as 2006-01-02T15:04:05Z, or in seconds since 1970; SOURCE_DATE_EPOCH if empty, else the time of the commit")
	fs.StringVar(&o.repository, "repository", o.repository, "prefix of the names of the images")
	fs.StringVar(&programs, "programs", programs, "programs, separated by commas")
	fs.StringVar(&platforms, "platforms", platforms, "platforms, separated by commas; those of darwin get binaries and no image")
	fs.StringVar(&images, "images", images, "the programs that get an image, separated by commas; all if empty")
	if err := fs.Parse(args); err != nil {
		return err
	}
	if fs.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q: only flags are accepted; see --help", fs.Arg(0))
	}
	o.programs = split(programs)
	o.platforms = nil
	for _, text := range split(platforms) {
		system, arch, ok := strings.Cut(text, "/")
		if !ok || (system != "linux" && system != "darwin") || (arch != "amd64" && arch != "arm64") {
			return fmt.Errorf("--platforms: %q is not supported; set some of linux/amd64, linux/arm64, darwin/amd64 and darwin/arm64", text)
		}
		o.platforms = append(o.platforms, platform{system, arch})
	}
	if len(o.programs) == 0 || len(o.platforms) == 0 {
		return errors.New("--programs and --platforms must not be empty")
	}
	return o.parseImages(split(images))
}

func (o *options) parseImages(images []string) error {
	o.images = images
	if len(images) == 0 {
		o.images = o.programs
	}
	for _, program := range o.images {
		if !slices.Contains(o.programs, program) {
			return fmt.Errorf("--images: %q is not built; add it to --programs", program)
		}
	}
	if !slices.ContainsFunc(o.platforms, func(p platform) bool { return p.os == "linux" }) {
		return errors.New("--platforms: images need linux/amd64 or linux/arm64")
	}
	return nil
}

// split splits, sorts and deduplicates a list, so that its order does not change the output.
func split(list string) []string {
	items := strings.FieldsFunc(list, func(r rune) bool { return r == ',' || r == ' ' })
	slices.Sort(items)
	return slices.Compact(items)
}

var (
	aTag        = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}$`)
	aRepository = regexp.MustCompile(`^[a-z0-9.-]+(:[0-9]+)?(/[a-z0-9]+([._-]+[a-z0-9]+)*)*$`)
)

// complete fills in empty settings and rejects invalid ones before the long build starts.
func (o *options) complete(ctx context.Context, lookupEnv func(string) (string, bool)) error {
	var err error
	if o.source, err = filepath.Abs(o.source); err != nil {
		return err
	}
	for _, program := range o.programs {
		if info, err := os.Stat(filepath.Join(o.source, "cmd", program)); err != nil || !info.IsDir() {
			return fmt.Errorf("--programs: unknown program %q: %s has no folder cmd/%s", program, o.source, program)
		}
	}
	if o.version == "" {
		if o.version, err = o.git(ctx, "describe", "--tags", "--always", "--dirty", "--abbrev=12"); err != nil {
			return fmt.Errorf("unknown version: set --version, or build in a git clone: %w", err)
		}
	}
	if !aTag.MatchString(o.version) {
		return fmt.Errorf("--version: %q is not a valid image tag: use at most 128 letters, digits, '_', '.' and '-'", o.version)
	}
	if !aRepository.MatchString(o.repository) {
		return fmt.Errorf("--repository: %q is not a valid repository; use a name such as registry.example.com/kube-queue", o.repository)
	}
	if o.revision == "" {
		// Without git, the images record no commit.
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
			return fmt.Errorf("unknown time of the files: set --created or SOURCE_DATE_EPOCH, or build in a git clone: %w", err)
		}
		from = "the commit's time"
	}
	if seconds, err := strconv.ParseInt(text, 10, 64); err == nil {
		o.created = time.Unix(seconds, 0).UTC()
	} else if o.created, err = time.Parse(time.RFC3339, text); err != nil {
		return fmt.Errorf("%s: %q is neither a time such as 2006-01-02T15:04:05Z nor a number of seconds since 1970", from, text)
	}
	// The range of a tar header without extensions; it has no time before 1970.
	if o.created.Unix() < 0 || o.created.Unix() >= 1<<33 {
		return fmt.Errorf("%s: %q is outside of the range of times in an archive", from, text)
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
