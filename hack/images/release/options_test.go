package main

import (
	"io"
	"path/filepath"
	"strings"
	"testing"
)

func TestWhatCannotWorkIsRefusedBeforeTheBuild(t *testing.T) {
	change := func(name, content string) func(*testing.T, string) {
		return func(t *testing.T, source string) { put(t, filepath.Join(source, name), content) }
	}
	for _, test := range []struct {
		name   string
		args   string
		change func(t *testing.T, source string)
		want   string
	}{
		{"nothing is wrong", "make", nil, ""},
		{"no version", "make --version=", nil, "make release VERSION=v1.2.3"},
		{"a version without v", "make --version=1.2.3", nil, "is not vMAJOR.MINOR.PATCH"},
		{"a version of two numbers", "make --version=v1.2", nil, "is not vMAJOR.MINOR.PATCH"},
		{"a version with a zero in front", "make --version=v1.02.3", nil, "is not vMAJOR.MINOR.PATCH"},
		{"a version with build metadata", "make --version=v1.2.3+x", nil, "build metadata"},
		{"a version without a section", "make --version=v1.3.0-rc.1", nil, `"## 1.3.0-rc.1 (DATE)"`},
		{"a version that the chart does not have", "make --version=v1.2.2", nil, "set both to 1.2.2, and run make generate"},
		{"a registry with capitals", "make --registry=ghcr.io/Owner", nil, "in lower case"},
		{"an argument", "make now", nil, "only flags are accepted"},
		{"a change in no commit", "make", change("new", ""), "changes that are in no commit"},
		{"a change in no commit, for a trial", "make --revision=trial", change("new", ""), ""},
		{"a file of somebody in the output", "make --revision=x", change("bin/release/mine", ""), "is in no SHA256SUMS of an earlier run"},
		{"a file of an earlier run in the output", "make --revision=x", func(t *testing.T, source string) {
			put(t, filepath.Join(source, "bin/release/install.yaml"), "")
			put(t, filepath.Join(source, "bin/release", sums), "00  install.yaml\n")
		}, ""},
		{"a platform that is not built", "images --platforms=linux/amd64,windows/amd64", nil, "set some of linux/amd64, linux/arm64, darwin/amd64 and darwin/arm64"},
		{"no platform of images", "images --platforms=darwin/arm64", nil, "images need linux/amd64 or linux/arm64"},
		{"a version that cannot tag an image", "images --version=v1+x", nil, "is not a valid image tag"},
		{"a version that would be a flag of the linker", "images --version=-X", nil, "is not a valid image tag"},
		{"a time that is none", "images --created=today", nil, `"today" is not a number of seconds`},
		{"a time before 1970", "images --created=-5", nil, "is not a number of seconds since 1970 that an archive can have"},
		{"a flag that there is not", "images --push", nil, "flag provided but not defined"},
		{"a command that there is not", "publish", nil, "release images, release make or release push"},
	} {
		t.Run(test.name, func(t *testing.T) {
			source := fixture(t)
			if test.change != nil {
				test.change(t, source)
			}
			words := strings.Fields(test.args)
			args := []string{words[0], "--source", source, "--output", filepath.Join(source, "bin/release"), "--version", "v1.2.3"}
			if words[0] == "make" {
				args = append(args, "--check")
			}
			out, err := command(t, append(args, words[1:]...)...)
			switch {
			case test.want == "" && err != nil:
				t.Error(err)
			case test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)):
				t.Errorf("the error is %v", err)
			}
			if strings.Contains(out, "building") {
				t.Errorf("it has built: %s", out)
			}
		})
	}
}

func TestVersionRevisionAndTimeAreTheCommits(t *testing.T) {
	source := fixture(t)
	settings := func(args ...string) *options {
		t.Helper()
		o, err := parse(t.Context(), "images", append(args, "--source", source), io.Discard)
		must(t, err)
		return o
	}
	if o := settings(); o.version != "v4.5.6" || len(o.revision) != 40 || o.created.Unix() != 1600000000 {
		t.Errorf("they are %s, %s, %v", o.version, o.revision, o.created)
	}
	put(t, filepath.Join(source, "LICENSE"), "changed")
	if o := settings(); o.version != "v4.5.6-dirty" {
		t.Errorf("the version of what is in no commit is %s", o.version)
	}
	t.Setenv("SOURCE_DATE_EPOCH", "1500000000")
	if o := settings(); o.created.Unix() != 1500000000 {
		t.Errorf("SOURCE_DATE_EPOCH gives %v", o.created)
	}
	if o := settings("--created", "1400000000"); o.created.Unix() != 1400000000 {
		t.Errorf("--created gives %v", o.created)
	}
}

func TestOutsideOfGitTheErrorShowsWhatToGive(t *testing.T) {
	for args, want := range map[string]string{
		"images":                             "set --version",
		"images --version=v1":                "set --created or SOURCE_DATE_EPOCH",
		"make --version=v1.2.3":              "has no programs",
		"make --version=v1.2.3 --source=cmd": "set --revision",
	} {
		t.Run(args, func(t *testing.T) {
			t.Chdir(t.TempDir())
			put(t, "cmd/cmd/one/main.go", "")
			if _, err := command(t, strings.Fields(args)...); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("the error is %v", err)
			}
		})
	}
}
