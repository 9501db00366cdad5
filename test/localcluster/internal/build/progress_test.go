package build

import (
	"strings"
	"testing"
	"time"
)

func TestMissingPackagesAreThoseToCompile(t *testing.T) {
	listed := "unsafe\t\nfmt\tnot installed but available in build cache\nexample.com/a\tstale dependency: example.com/b\nexample.com/b\tbuild ID mismatch\n"
	if got := missingPackages(listed); got != 2 {
		t.Errorf("got %d, want 2", got)
	}
}

func TestProgressShowsTheCurrentStep(t *testing.T) {
	began := time.Now()
	p := &progress{component: "kwok", started: began}
	check := func(want string) {
		t.Helper()
		if got := p.text(began.Add(65 * time.Second)); !strings.HasPrefix(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	check("building kwok: listing packages, 1m5s")
	p.line("go: downloading k8s.io/api v0.36.3")
	check("building kwok: 1 modules downloaded, 1m5s  k8s.io/api v0.36.3")
	p.compiling(4)
	p.line("k8s.io/api/core/v1")
	check("building kwok: 1 of 4 packages (25%), 1m5s  k8s.io/api/core/v1")
	p.line("# k8s.io/api/apps/v1")
	p.line("./types.go:1:1: syntax error")
	check("building kwok: 1 of 4 packages (25%)")
	if got := p.output(); got != "# k8s.io/api/apps/v1\n./types.go:1:1: syntax error" {
		t.Errorf("kept %q", got)
	}
	for range 3 {
		p.line("k8s.io/api/batch/v1")
	}
	check("building kwok: linking, 1m5s")
}
