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

// billOfMaterials returns the modules that a binary was linked from, in CycloneDX format. It reads them from the
// binary, so it omits modules of go.mod that are not linked. folders are the folders of the modules, for their
// licences.
func (o *options) billOfMaterials(program, platform string, binary []byte, folders map[string]string) ([]byte, error) {
	info, err := buildinfo.Read(bytes.NewReader(binary))
	if err != nil {
		return nil, fmt.Errorf("reading the build info of %s for %s: %w", program, platform, err)
	}
	id := sha256.Sum256(binary)
	subject := cyclonedx.Component{
		Type: cyclonedx.ComponentTypeApplication, Name: program, Version: o.version,
		PackageURL: packageURL(info.Main.Path, o.version) + "#cmd/" + program,
		Hashes:     &[]cyclonedx.Hash{{Algorithm: cyclonedx.HashAlgoSHA256, Value: hex.EncodeToString(id[:])}},
		Licenses:   licences(licencesIn(folders[info.Main.Path])),
		Properties: o.settings(platform, info),
	}
	subject.BOMRef = subject.PackageURL
	// The name that vulnerability scanners use for the standard library. Experiments follow the
	// version after a space; this build uses none.
	version, _, _ := strings.Cut(strings.TrimPrefix(info.GoVersion, "go"), " ")
	components := []cyclonedx.Component{component(&debug.Module{Path: "stdlib", Version: version}, []string{"BSD-3-Clause"})}
	for _, module := range info.Deps {
		if module.Replace != nil {
			return nil, fmt.Errorf("module %s is replaced: nobody could get what %s is linked from by its name; remove the replace directive of go.mod", module.Path, program)
		}
		components = append(components, component(module, licencesIn(folders[module.Path])))
	}
	slices.SortFunc(components, func(a, b cyclonedx.Component) int { return strings.Compare(a.BOMRef, b.BOMRef) })
	var refs []string
	for _, c := range components {
		refs = append(refs, c.BOMRef)
	}
	bom := cyclonedx.NewBOM()
	// The same binary has the same serial number, a UUID of version 8: custom.
	id[6], id[8] = id[6]&0x0f|0x80, id[8]&0x3f|0x80
	bom.SerialNumber = fmt.Sprintf("urn:uuid:%x-%x-%x-%x-%x", id[:4], id[4:6], id[6:8], id[8:10], id[10:16])
	bom.Metadata = &cyclonedx.Metadata{Timestamp: o.created.Format(time.RFC3339), Component: &subject}
	bom.Components = &components
	// The binary does not record the dependencies between modules.
	bom.Dependencies = &[]cyclonedx.Dependency{{Ref: subject.BOMRef, Dependencies: &refs}}
	var out bytes.Buffer
	encoder := cyclonedx.NewBOMEncoder(&out, cyclonedx.BOMFileFormatJSON)
	if err := encoder.SetPretty(true).EncodeVersion(bom, cyclonedx.SpecVersion1_6); err != nil {
		return nil, fmt.Errorf("writing the bill of materials of %s for %s: %w", program, platform, err)
	}
	return out.Bytes(), nil
}

// component returns the component of a module. The h1 sum of go.sum covers all files of the module. It is not the
// digest of one file, so CycloneDX does not count it as a hash.
func component(module *debug.Module, licenceNames []string) cyclonedx.Component {
	id := packageURL(module.Path, module.Version)
	c := cyclonedx.Component{
		Type: cyclonedx.ComponentTypeLibrary, BOMRef: id, PackageURL: id,
		Name: module.Path, Version: module.Version, Licenses: licences(licenceNames),
	}
	if module.Sum != "" { // the standard library has none
		c.Properties = &[]cyclonedx.Property{{Name: "kube-queue:go:sum", Value: module.Sum}}
	}
	return c
}

// settings returns the platform, the toolchain, the commit and how the binary was built.
func (o *options) settings(platform string, info *debug.BuildInfo) *[]cyclonedx.Property {
	out := []cyclonedx.Property{
		{Name: "kube-queue:platform", Value: platform},
		{Name: "kube-queue:go:version", Value: info.GoVersion},
	}
	if o.revision != "" {
		out = append(out, cyclonedx.Property{Name: "kube-queue:revision", Value: o.revision})
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
	return "pkg:golang/" + strings.Join(parts, "/") + "@" + strings.ReplaceAll(url.PathEscape(version), "+", "%2B")
}

func licences(names []string) *cyclonedx.Licenses {
	if len(names) == 0 {
		return nil
	}
	out := cyclonedx.Licenses{}
	for _, name := range names {
		out = append(out, cyclonedx.LicenseChoice{License: &cyclonedx.License{ID: name}})
	}
	return &out
}
