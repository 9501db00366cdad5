package main

import (
	"bytes"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/hex"
	"fmt"
	"net/url"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/CycloneDX/cyclonedx-go"
)

// billOfMaterials returns the modules that a binary was linked from, in CycloneDX format. They
// are read from the binary, so modules of go.mod that are not linked are not listed. folders
// are the folders of the modules, for their licences.
func billOfMaterials(program string, on platform, binary []byte, opts *options, folders map[string]string) ([]byte, error) {
	info, err := buildinfo.Read(bytes.NewReader(binary))
	if err != nil {
		return nil, fmt.Errorf("reading the build info of %s for %s: %w", program, on, err)
	}
	sum := sha256.Sum256(binary)
	subject := cyclonedx.Component{
		Type: cyclonedx.ComponentTypeApplication, Name: program, Version: opts.version,
		PackageURL: packageURL(info.Main.Path, opts.version) + "#cmd/" + program,
		Hashes:     &[]cyclonedx.Hash{{Algorithm: cyclonedx.HashAlgoSHA256, Value: hex.EncodeToString(sum[:])}},
		Licenses:   licencesIn(folders[info.Main.Path]),
		Properties: settings(on, info, opts),
	}
	subject.BOMRef = subject.PackageURL
	components := []cyclonedx.Component{standardLibrary(info.GoVersion)}
	for _, module := range info.Deps {
		components = append(components, component(module, folders[module.Path]))
	}
	slices.SortFunc(components, func(a, b cyclonedx.Component) int { return strings.Compare(a.BOMRef, b.BOMRef) })
	var refs []string
	for _, c := range components {
		refs = append(refs, c.BOMRef)
	}
	bom := cyclonedx.NewBOM()
	bom.SerialNumber = "urn:uuid:" + uuid(sum)
	bom.Metadata = &cyclonedx.Metadata{Timestamp: opts.created.Format(time.RFC3339), Component: &subject}
	bom.Components = &components
	// The binary does not record the dependencies between modules.
	bom.Dependencies = &[]cyclonedx.Dependency{{Ref: subject.BOMRef, Dependencies: &refs}}
	var out bytes.Buffer
	encoder := cyclonedx.NewBOMEncoder(&out, cyclonedx.BOMFileFormatJSON)
	if err := encoder.SetPretty(true).EncodeVersion(bom, cyclonedx.SpecVersion1_6); err != nil {
		return nil, fmt.Errorf("writing the bill of materials of %s for %s: %w", program, on, err)
	}
	return out.Bytes(), nil
}

// component returns the component of a module. The h1 sum of go.sum covers all files of the
// module. It is not the digest of one file and therefore not a hash in terms of CycloneDX.
func component(module *debug.Module, folder string) cyclonedx.Component {
	used, properties := module, []cyclonedx.Property{}
	if module.Replace != nil {
		used = module.Replace
		properties = append(properties, cyclonedx.Property{Name: "kube-queue:go:replaces", Value: module.Path + "@" + module.Version})
	}
	c := cyclonedx.Component{Type: cyclonedx.ComponentTypeLibrary, Name: used.Path, Version: used.Version, Licenses: licencesIn(folder)}
	if used.Version == "" || used.Version == "(devel)" {
		// Replaced by a folder, whose name is meaningless elsewhere.
		c.Name, c.Version = module.Path, module.Version
	} else {
		c.PackageURL = packageURL(used.Path, used.Version)
	}
	c.BOMRef = packageURL(c.Name, c.Version)
	if used.Sum != "" {
		properties = append(properties, cyclonedx.Property{Name: "kube-queue:go:sum", Value: used.Sum})
	}
	if len(properties) > 0 {
		c.Properties = &properties
	}
	return c
}

// standardLibrary returns the component of the standard library, under the name that
// vulnerability scanners use.
func standardLibrary(goVersion string) cyclonedx.Component {
	// Experiments follow after a space; this build uses none.
	version, _, _ := strings.Cut(strings.TrimPrefix(goVersion, "go"), " ")
	purl := packageURL("stdlib", version)
	return cyclonedx.Component{Type: cyclonedx.ComponentTypeLibrary, BOMRef: purl, PackageURL: purl, Name: "stdlib", Version: version,
		Licenses: licences("BSD-3-Clause")}
}

// settings are the platform, the toolchain, the commit and how the binary was built.
func settings(on platform, info *debug.BuildInfo, opts *options) *[]cyclonedx.Property {
	out := []cyclonedx.Property{
		{Name: "kube-queue:platform", Value: on.String()},
		{Name: "kube-queue:go:version", Value: info.GoVersion},
	}
	if opts.revision != "" {
		out = append(out, cyclonedx.Property{Name: "kube-queue:revision", Value: opts.revision})
	}
	for _, setting := range info.Settings {
		out = append(out, cyclonedx.Property{Name: "kube-queue:go:build:" + setting.Key, Value: setting.Value})
	}
	return &out
}

// packageURL returns pkg:golang/PATH@VERSION, with the path in lower case as purl requires.
func packageURL(path, version string) string {
	parts := strings.Split(strings.ToLower(path), "/")
	for i, part := range parts {
		parts[i] = url.PathEscape(part)
	}
	out := "pkg:golang/" + strings.Join(parts, "/")
	if version != "" {
		out += "@" + strings.ReplaceAll(url.PathEscape(version), "+", "%2B")
	}
	return out
}

// uuid derives a serial number from a digest, so that the same binary has the same number.
func uuid(sum [sha256.Size]byte) string {
	id := sum[:16]
	id[6] = id[6]&0x0f | 0x80 // version 8: custom
	id[8] = id[8]&0x3f | 0x80
	text := hex.EncodeToString(id)
	return strings.Join([]string{text[:8], text[8:12], text[12:16], text[16:20], text[20:]}, "-")
}
