package main

import (
	"bytes"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestWhatCannotWorkIsRefusedBeforeTheBuild(t *testing.T) {
	source := fixture(t)
	for _, test := range []struct {
		name string
		args []string
		want string
	}{
		{"a program that is not there", []string{"--programs", "nobody"}, "has no folder cmd/nobody"},
		{"no program", []string{"--programs", ","}, "must not be empty"},
		{"a platform that is not built", []string{"--platforms", "windows/amd64"}, "set some of linux/amd64, linux/arm64, darwin/amd64 and darwin/arm64"},
		{"an image of a program that is not built", []string{"--images", "silent"}, `--images: "silent" is not built`},
		{"no platform of images", []string{"--platforms", "darwin/arm64"}, "images need linux/amd64 or linux/arm64"},
		{"a version that cannot tag an image", []string{"--version", "v1+x"}, "is not a valid image tag"},
		{"a version that would be a flag of the linker", []string{"--version", "v1 -X other=1"}, "is not a valid image tag"},
		{"a time that is none", []string{"--created", "today"}, `"today" is neither a time such as`},
		{"a time before 1970", []string{"--created", "-5"}, "outside of the range of times in an archive"},
		{"a repository with capitals", []string{"--repository", "Example/x"}, "is not a valid repository"},
		{"a word that is no flag", []string{"now"}, "only flags are accepted"},
		{"a flag that there is not", []string{"--push"}, "flag provided but not defined"},
	} {
		t.Run(test.name, func(t *testing.T) {
			output := filepath.Join(t.TempDir(), "output")
			args := append([]string{"--source", source, "--output", output, "--version", "v1", "--created", "1", "--programs", "greeter"}, test.args...)
			var log bytes.Buffer
			err := start(t.Context(), args, &log, &log)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("the error is %v", err)
			}
			if strings.Contains(log.String(), "building") {
				t.Errorf("it has built: %s", &log)
			}
		})
	}
}

func TestVersionRevisionAndTimeAreTheCommits(t *testing.T) {
	source := fixture(t)
	for _, args := range [][]string{
		{"init", "--quiet"}, {"add", "."}, {"-c", "user.name=a", "-c", "user.email=a@example.test", "-c", "commit.gpgsign=false", "commit", "--quiet", "--message", "x"},
		{"-c", "tag.gpgsign=false", "tag", "v4.5.6"},
	} {
		cmd := exec.Command("git", args...)
		cmd.Dir = source
		cmd.Env = append(cmd.Environ(), "GIT_COMMITTER_DATE=@1600000000 +0200")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
	opts := completed(t, source, "")
	if opts.version != "v4.5.6" || len(opts.revision) != 40 || opts.created.Unix() != 1600000000 {
		t.Errorf("they are %s, %s, %v", opts.version, opts.revision, opts.created)
	}
	put(t, filepath.Join(source, "LICENSE"), "changed")
	if opts := completed(t, source, ""); opts.version != "v4.5.6-dirty" {
		t.Errorf("the version of what is in no commit is %s", opts.version)
	}
	if opts := completed(t, source, "1500000000"); opts.created.Unix() != 1500000000 {
		t.Errorf("SOURCE_DATE_EPOCH gives %v", opts.created)
	}
	if opts := completed(t, source, "1500000000", "--created", "2020-01-02T03:04:05+01:00"); opts.created != time.Date(2020, 1, 2, 2, 4, 5, 0, time.UTC) {
		t.Errorf("--created gives %v", opts.created)
	}
}

func TestOutsideOfGitTheErrorShowsWhatToGive(t *testing.T) {
	source := fixture(t)
	for _, test := range []struct {
		args []string
		want string
	}{
		{nil, "set --version"},
		{[]string{"--version", "v1"}, "set --created or SOURCE_DATE_EPOCH"},
	} {
		opts := defaults()
		if err := opts.parse(append([]string{"--source", source, "--programs", "greeter"}, test.args...), &bytes.Buffer{}); err != nil {
			t.Fatal(err)
		}
		if err := opts.complete(t.Context(), epoch("")); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("with %q it says %v", test.args, err)
		}
	}
}

func completed(t *testing.T, source, sourceDateEpoch string, args ...string) *options {
	t.Helper()
	opts := defaults()
	if err := opts.parse(append([]string{"--source", source, "--programs", "greeter"}, args...), &bytes.Buffer{}); err != nil {
		t.Fatal(err)
	}
	if err := opts.complete(t.Context(), epoch(sourceDateEpoch)); err != nil {
		t.Fatal(err)
	}
	return opts
}

func epoch(value string) func(string) (string, bool) {
	return func(name string) (string, bool) { return value, name == "SOURCE_DATE_EPOCH" && value != "" }
}
