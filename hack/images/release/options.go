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
	"strings"
)

// options are the settings of a release.
type options struct {
	// source is a clone of the repository, output the folder of the release.
	source, output string
	// tag is the version with its v, version the one without. Images and chart have the latter.
	tag, version string
	// registry is the prefix of the names of the images and of the chart.
	registry string
	// sourceURL is the address of the repository, to which links of the notes lead; empty if the
	// repository has none.
	sourceURL string
	platforms string
	// revision and created are passed to images.
	revision, created string
	// images and helm are the programs that are run.
	images, helm string
	// checkOnly ends the run before the build. chartOnly leaves the programs and images out.
	checkOnly, chartOnly bool
}

// placeholder is the default registry, because the repository has no public home.
const placeholder = "registry.example.com"

// imaged are the programs that get an image. The binaries are those of all programs.
var imaged = []string{"job-extensions", "kube-queue-controller"}

var (
	// The grammar of semver.org, without build metadata: they cannot be in the tag of an image.
	aVersion = regexp.MustCompile(`^v(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(-(0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*)(\.(0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*))*)?$`)
	// A registry with an optional prefix of repositories, both in lower case.
	aRegistry = regexp.MustCompile(`^[a-z0-9.-]+(:[0-9]+)?(/[a-z0-9]+([._-]+[a-z0-9]+)*)*$`)
)

func parse(args []string, usage io.Writer) (*options, error) {
	o := &options{}
	fs := flag.NewFlagSet("release make", flag.ContinueOnError)
	fs.SetOutput(usage)
	fs.StringVar(&o.tag, "version", "", "version of the release, such as v1.2.3")
	fs.StringVar(&o.registry, "registry", placeholder, "registry of the images and of the chart, with an optional prefix such as ghcr.io/owner")
	fs.StringVar(&o.sourceURL, "source-url", "", "`address` of the repository, to which links of the notes lead; without it, they name files of the source")
	fs.StringVar(&o.source, "source", ".", "`folder` of a clone of the repository")
	fs.StringVar(&o.output, "output", "bin/release", "output `folder`; an earlier release in it is replaced")
	fs.StringVar(&o.platforms, "platforms", "linux/amd64,linux/arm64,darwin/amd64,darwin/arm64", "platforms of the binaries, separated by commas; those of linux are also the platforms of the images")
	fs.StringVar(&o.revision, "revision", "", "commit to record; the one checked out if empty")
	fs.StringVar(&o.created, "created", "", "time of all files, as in images --created; the time of the commit if empty")
	fs.StringVar(&o.images, "images", "bin/tools/images", "the program images")
	fs.StringVar(&o.helm, "helm", "bin/tools/helm", "the program helm")
	fs.BoolVar(&o.checkOnly, "check", false, "only check that the release can be made")
	fs.BoolVar(&o.chartOnly, "chart-only", false, "make only the chart and the manifests, to try them; needs --created in seconds since 1970, and --revision")
	if err := fs.Parse(args); err != nil {
		return nil, err
	}
	if fs.NArg() > 0 {
		return nil, fmt.Errorf("unexpected argument %q: only flags are accepted; see --help", fs.Arg(0))
	}
	return o, o.check()
}

func (o *options) check() error {
	const example = "; for example: make release VERSION=v1.2.3"
	switch {
	case o.tag == "":
		return errors.New("no version: set the version of the release" + example)
	case strings.Contains(o.tag, "+"):
		return fmt.Errorf("version %q has build metadata (+...), which the tag of an image cannot have%s", o.tag, example)
	case !strings.HasPrefix(o.tag, "v") && aVersion.MatchString("v"+o.tag):
		return fmt.Errorf("version %q has no v: set v%s", o.tag, o.tag)
	case !aVersion.MatchString(o.tag):
		return fmt.Errorf("version %q is not a semantic version: use vMAJOR.MINOR.PATCH, or vMAJOR.MINOR.PATCH-PRERELEASE%s", o.tag, example)
	case !aRegistry.MatchString(o.registry):
		return fmt.Errorf("registry %q is not a name in lower case such as registry.example.com or ghcr.io/owner", o.registry)
	}
	o.version = strings.TrimPrefix(o.tag, "v")
	for _, folder := range []*string{&o.source, &o.output, &o.images, &o.helm} {
		var err error
		if *folder, err = filepath.Abs(*folder); err != nil {
			return err
		}
	}
	return nil
}

// checkTree refuses files that are in no commit: nobody could make the release again. A revision
// that is given explicitly is for trials, and for source without git.
func (o *options) checkTree(ctx context.Context) error {
	if o.revision != "" {
		return nil
	}
	cmd := exec.CommandContext(ctx, "git", "status", "--porcelain")
	cmd.Dir = o.source
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("unknown commit: make the release in a git clone, or set --revision: git status in %s: %w: %s", o.source, err, strings.TrimSpace(errs.String()))
	}
	if len(out) > 0 {
		return fmt.Errorf("%s has changes that are in no commit, so nobody could make this release again: commit or remove them, or set --revision for a trial\n%s",
			o.source, strings.TrimRight(string(out), "\n"))
	}
	return nil
}

// programs returns the names of all programs: the folders of cmd with a main.go.
func (o *options) programs() ([]string, error) {
	found, err := filepath.Glob(filepath.Join(o.source, "cmd", "*", "main.go"))
	if err != nil {
		return nil, err
	}
	var names []string
	for _, path := range found {
		names = append(names, filepath.Base(filepath.Dir(path)))
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("%s has no programs: no cmd/NAME/main.go", o.source)
	}
	return names, nil
}

// imageRepository is the prefix of the names of the images, and chartRepository the name of the
// chart. The chart adds the prefix kube-queue of the images itself.
func (o *options) imageRepository() string { return o.registry + "/kube-queue" }
func (o *options) chartRepository() string { return o.imageRepository() + "/charts/" + chartName }

func (o *options) read(name string) (string, error) {
	text, err := os.ReadFile(filepath.Join(o.source, filepath.FromSlash(name)))
	if err != nil {
		return "", fmt.Errorf("%s is no clone of the repository: %w", o.source, err)
	}
	return string(text), nil
}
