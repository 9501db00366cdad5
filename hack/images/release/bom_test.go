package main

import (
	"bytes"
	"debug/buildinfo"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"testing"

	"github.com/CycloneDX/cyclonedx-go"
)

func TestABillOfMaterialsNamesEverythingThatTheBinaryWasLinkedFrom(t *testing.T) {
	folder := t.TempDir()
	images(t, fixture(t), folder)
	for _, arch := range []string{"amd64", "arm64"} {
		binary := binaryOf(t, folder, arch)
		info, err := buildinfo.Read(strings.NewReader(binary))
		must(t, err)
		bom := decode(t, read(t, filepath.Join(folder, "kube-queue-controller-v1.2.3-linux-"+arch+".cdx.json")))
		found := map[string]cyclonedx.Component{}
		for _, c := range *bom.Components {
			found[c.Name] = c
		}
		// The standard library is listed in addition to the modules.
		if len(found) != len(info.Deps)+1 || len(info.Deps) != 1 {
			t.Errorf("there are %d components for %d modules", len(found), len(info.Deps))
		}
		for _, module := range info.Deps {
			if c, ok := found[module.Path]; !ok || c.Version != module.Version {
				t.Errorf("of %s %s it shows %q", module.Path, module.Version, c.Version)
			}
			checkModule(t, found[module.Path], module)
		}
		if std := found["stdlib"]; std.Version == "" || "go"+std.Version != info.GoVersion || std.PackageURL != "pkg:golang/stdlib@"+std.Version {
			t.Errorf("the standard library is %+v", std)
		}
		checkSubject(t, bom, arch, binary)
	}
}

func checkModule(t *testing.T, c cyclonedx.Component, module *debug.Module) {
	t.Helper()
	if c.PackageURL != "pkg:golang/"+module.Path+"@"+module.Version {
		t.Errorf("the purl of %s is %s", module.Path, c.PackageURL)
	}
	if c.Properties == nil || (*c.Properties)[0] != (cyclonedx.Property{Name: "kube-queue:go:sum", Value: module.Sum}) || !strings.HasPrefix(module.Sum, "h1:") {
		t.Errorf("the sum of %s is not %s", module.Path, module.Sum)
	}
	if c.Licenses == nil || (*c.Licenses)[0].License.ID != "BSD-3-Clause" {
		t.Errorf("the licence of %s is %v", module.Path, c.Licenses)
	}
}

func checkSubject(t *testing.T, bom *cyclonedx.BOM, arch, binary string) {
	t.Helper()
	c := bom.Metadata.Component
	if c.Name != "kube-queue-controller" || c.Version != "v1.2.3" || c.PackageURL != "pkg:golang/kube-queue.dev/kube-queue@v1.2.3#cmd/kube-queue-controller" {
		t.Errorf("it is about %+v", c)
	}
	if (*c.Hashes)[0].Value != (file{data: []byte(binary)}).sum() || (*c.Licenses)[0].License.ID != "Apache-2.0" {
		t.Errorf("it has digest %v and licence %v", *c.Hashes, *c.Licenses)
	}
	if bom.SpecVersion != cyclonedx.SpecVersion1_6 || bom.Metadata.Timestamp != "2023-11-14T22:13:20Z" {
		t.Errorf("it is of version %v and time %s", bom.SpecVersion, bom.Metadata.Timestamp)
	}
	reported := map[string]string{}
	for _, property := range *c.Properties {
		reported[property.Name] = property.Value
	}
	for name, want := range map[string]string{"kube-queue:platform": "linux/" + arch, "kube-queue:revision": "abc",
		"kube-queue:go:build:CGO_ENABLED": "0", "kube-queue:go:build:-trimpath": "true"} {
		if reported[name] != want {
			t.Errorf("%s is %q, not %q", name, reported[name], want)
		}
	}
	if all := (*bom.Dependencies)[0]; all.Ref != c.BOMRef || len(*all.Dependencies) != len(*bom.Components) {
		t.Errorf("it depends on %v", all)
	}
}

func TestAModuleKeepsItsNameAndHasAPackageURLInLowerCase(t *testing.T) {
	c := component(&debug.Module{Path: "example.test/New", Version: "v2.0.0+incompatible", Sum: "h1:x"}, nil)
	if c.Name != "example.test/New" || c.PackageURL != "pkg:golang/example.test/new@v2.0.0%2Bincompatible" {
		t.Errorf("it is %s, %s", c.Name, c.PackageURL)
	}
}

func TestAReplacedModuleIsRefused(t *testing.T) {
	source := fixture(t)
	put(t, filepath.Join(source, "go.mod"), read(t, filepath.Join(source, "go.mod"))+"\nreplace "+dependency+" => ./other\n")
	put(t, filepath.Join(source, "other", "go.mod"), "module "+dependency+"\n\ngo 1.26.0\n")
	put(t, filepath.Join(source, "other", "other.go"), "package licensecheck\n\nfunc Scan([]byte) {}\n")
	_, err := command(t, "images", "--source", source, "--output", t.TempDir(), "--version", "v1.2.3", "--platforms", "linux/amd64")
	if err == nil || !strings.Contains(err.Error(), "module "+dependency+" is replaced") {
		t.Errorf("the error is %v", err)
	}
}

func TestALicenceIsReportedOnlyWhereItsTextIsKnown(t *testing.T) {
	folder, text := t.TempDir(), read(t, "../../../LICENSE")
	put(t, filepath.Join(folder, "LICENSE"), "You may use this on Sundays.")
	put(t, filepath.Join(folder, "README.md"), text)
	if found := licencesIn(folder); len(found) > 0 {
		t.Errorf("found was %q", found)
	}
	put(t, filepath.Join(folder, "LICENSE-APACHE.txt"), text)
	if found := licencesIn(folder); !slices.Equal(found, []string{"Apache-2.0"}) {
		t.Errorf("found was %q", found)
	}
}

func TestAFileThatIsNoBinaryHasNoBillOfMaterials(t *testing.T) {
	if _, err := (&options{}).billOfMaterials("job-extensions", "linux/amd64", []byte("#!/bin/sh"), nil); err == nil {
		t.Error("one was written")
	}
}

func decode(t *testing.T, text string) *cyclonedx.BOM {
	t.Helper()
	bom := &cyclonedx.BOM{}
	must(t, cyclonedx.NewBOMDecoder(bytes.NewReader([]byte(text)), cyclonedx.BOMFileFormatJSON).Decode(bom))
	return bom
}
