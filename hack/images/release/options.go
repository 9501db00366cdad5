package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// options are the settings of "release images" and "release make". The program NAME is the
// package cmd/NAME of the source.
type options struct {
	// source is a clone of the repository, output the folder to write.
	source, output string
	// tag is the version as given; for a release, it begins with v. version, which images and chart have, does not.
	tag, version string
	// registry is the prefix of the names of the images and of the chart.
	registry string
	// platforms are sorted and unique, so that their order on the command line does not change the output.
	platforms []string
	// programs are the programs to build.
	programs []string
	revision string
	created  time.Time

	// The following settings are only for "release make".

	// sourceURL is the address of the repository, for links in the notes; empty if it has none.
	sourceURL string
	helm      string
	// checkOnly ends the run before the build. chartOnly leaves the programs and images out.
	checkOnly, chartOnly bool
}

// placeholder is the default registry of a release, because the repository has no public home.
const placeholder = "registry.example.com"

// imaged are the programs that get an image.
var imaged = []string{"job-extensions", "kube-queue-controller", "kube-queue-web"}

func parse(ctx context.Context, command string, args []string, usage io.Writer) (*options, error) {
	registry, output, platforms := placeholder, "bin/release", "linux/amd64,linux/arm64,darwin/amd64,darwin/arm64"
	if command == "images" {
		// The registry that Kubernetes assumes for a name without a host.
		registry, output, platforms = "docker.io", "bin/images", "linux/amd64,linux/arm64"
	}
	o := &options{programs: imaged}
	fs := flag.NewFlagSet("release "+command, flag.ContinueOnError)
	fs.SetOutput(usage)
	fs.StringVar(&o.source, "source", ".", "`folder` of a clone of the repository")
	fs.StringVar(&o.output, "output", output, "output `folder`; the files of an earlier run in it are replaced")
	fs.StringVar(&o.tag, "version", "", "version: of a release such as v1.2.3, of images any tag, by default that of git describe")
	fs.StringVar(&o.registry, "registry", registry, "registry of the images and of the chart, with an optional prefix such as ghcr.io/owner")
	fs.StringVar(&platforms, "platforms", platforms, "platforms of the binaries, separated by commas; those of linux are also the platforms of the images")
	fs.StringVar(&o.revision, "revision", "", "commit to record; the one checked out if empty")
	created := fs.String("created", os.Getenv("SOURCE_DATE_EPOCH"), "time of all files, in seconds since 1970; that of SOURCE_DATE_EPOCH or of the commit if empty")
	if command == "make" {
		fs.StringVar(&o.sourceURL, "source-url", "", "`address` of the repository, to which links of the notes lead; without it, they name files of the source")
		fs.StringVar(&o.helm, "helm", "bin/tools/helm", "the program helm")
		fs.BoolVar(&o.checkOnly, "check", false, "only check that the release can be made")
		fs.BoolVar(&o.chartOnly, "chart-only", false, "make only the chart and the manifests, to try them")
	}
	if err := parseAll(fs, args); err != nil {
		return nil, err
	}
	o.platforms = strings.FieldsFunc(platforms, func(r rune) bool { return r == ',' || r == ' ' })
	slices.Sort(o.platforms)
	o.platforms = slices.Compact(o.platforms)
	return o, o.complete(ctx, command == "make", *created)
}

// complete fills in what the flags leave open, and rejects settings that cannot work, before the long build starts.
func (o *options) complete(ctx context.Context, release bool, created string) (err error) {
	for _, path := range []*string{&o.source, &o.output, &o.helm} {
		if *path, err = filepath.Abs(*path); err != nil {
			return err
		}
	}
	if release {
		if err := o.checkRelease(ctx); err != nil {
			return err
		}
	}
	if o.tag == "" {
		if o.tag, err = o.git(ctx, "describe", "--tags", "--always", "--dirty", "--abbrev=12"); err != nil {
			return fmt.Errorf("unknown version: set --version, or build in a git clone: %w", err)
		}
	}
	o.version = cmp.Or(o.version, o.tag)
	if o.revision == "" {
		// Without git, the images record no commit.
		o.revision, _ = o.git(ctx, "rev-parse", "HEAD")
	}
	if created == "" {
		if created, err = o.git(ctx, "log", "-1", "--format=%ct"); err != nil {
			return fmt.Errorf("unknown time of the files: set --created or SOURCE_DATE_EPOCH, or build in a git clone: %w", err)
		}
	}
	return o.check(created)
}

func parseAll(fs *flag.FlagSet, args []string) error {
	if err := fs.Parse(args); err != nil {
		return err
	}
	if fs.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q: only flags are accepted; see --help", fs.Arg(0))
	}
	return nil
}

var (
	// The grammar of semver.org, without build metadata, which the tag of an image cannot have.
	aVersion = regexp.MustCompile(`^v(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(-(0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*)(\.(0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*))*)?$`)
	aTag     = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}$`)
	// A registry with an optional prefix of repositories, both in lower case.
	aRegistry = regexp.MustCompile(`^[a-z0-9.-]+(:[0-9]+)?(/[a-z0-9]+([._-]+[a-z0-9]+)*)*$`)
	aPlatform = regexp.MustCompile(`^(linux|darwin)/(amd64|arm64)$`)
)

// checkRelease rejects invalid versions, and uncommitted files, because the release could not be made again. An
// explicit revision, for trials and for source without git, allows uncommitted files.
func (o *options) checkRelease(ctx context.Context) error {
	if !aVersion.MatchString(o.tag) {
		return fmt.Errorf("version %q is not vMAJOR.MINOR.PATCH or vMAJOR.MINOR.PATCH-PRERELEASE, without build metadata (+...), which the tag of an image cannot have; "+
			"for example: make release VERSION=v1.2.3", o.tag)
	}
	o.version, o.sourceURL = strings.TrimPrefix(o.tag, "v"), strings.TrimSuffix(o.sourceURL, "/")
	found, err := filepath.Glob(filepath.Join(o.source, "cmd", "*", "main.go"))
	if err != nil || len(found) == 0 {
		return fmt.Errorf("%s has no programs: no cmd/NAME/main.go", o.source)
	}
	o.programs = nil
	for _, path := range found {
		o.programs = append(o.programs, filepath.Base(filepath.Dir(path)))
	}
	if o.revision != "" {
		return nil
	}
	changes, err := o.git(ctx, "status", "--porcelain")
	if err != nil {
		return fmt.Errorf("unknown commit: make the release in a git clone, or set --revision: %w", err)
	}
	if changes != "" {
		return fmt.Errorf("%s has changes that are in no commit, so nobody could make this release again: commit or remove them, or set --revision for a trial\n%s",
			o.source, changes)
	}
	return nil
}

func (o *options) git(ctx context.Context, args ...string) (string, error) {
	out, err := o.run(ctx, nil, "git", args...)
	return strings.TrimSpace(string(out)), err
}

// check checks the settings that both commands have.
func (o *options) check(created string) error {
	seconds, err := strconv.ParseInt(created, 10, 64)
	o.created = time.Unix(seconds, 0).UTC()
	switch {
	// The range of a tar header without extensions; it has no time before 1970.
	case err != nil || seconds < 0 || seconds >= 1<<33:
		return fmt.Errorf("--created: %q is not a number of seconds since 1970 that an archive can have as a time", created)
	case !aTag.MatchString(o.version):
		return fmt.Errorf("--version: %q is not a valid image tag: use at most 128 letters, digits, '_', '.' and '-'", o.version)
	case !aRegistry.MatchString(o.registry):
		return fmt.Errorf("--registry: %q is not a name in lower case such as registry.example.com or ghcr.io/owner", o.registry)
	case !slices.ContainsFunc(o.platforms, func(p string) bool { return strings.HasPrefix(p, "linux/") }):
		return errors.New("--platforms: images need linux/amd64 or linux/arm64")
	}
	for _, platform := range o.platforms {
		if !aPlatform.MatchString(platform) {
			return fmt.Errorf("--platforms: %q is not supported; set some of linux/amd64, linux/arm64, darwin/amd64 and darwin/arm64", platform)
		}
	}
	return nil
}

// repository returns the prefix of the names of the images. The chart adds kube-queue to its registry itself.
func (o *options) repository() string { return o.registry + "/kube-queue" }

func (o *options) read(name string) ([]byte, error) {
	text, err := os.ReadFile(filepath.Join(o.source, filepath.FromSlash(name)))
	if err != nil {
		return nil, fmt.Errorf("%s is no clone of the repository: %w", o.source, err)
	}
	return text, nil
}
