package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"

	"github.com/google/licensecheck"
)

var (
	licenceFile = regexp.MustCompile(`(?i)^(licen[cs]es?|copying|unlicense)([-.](apache|mit|bsd|libyaml|2\.0))*(\.(md|txt|rst))?$`)
	// Names of licensecheck that are also SPDX identifiers; licensecheck defines further
	// variants.
	spdx = regexp.MustCompile(`^(Apache-2\.0|MIT|BSD-[0-4]-Clause|0BSD|ISC|MPL-[12]\.[01]|Unlicense|CC0-1\.0|CC-BY-(SA-)?[1-4]\.0|Zlib|BSL-1\.0)$`)
)

// licencesIn returns the licences whose text is in the folder of a module; none if no text is
// recognised with certainty, or the folder is not known.
func licencesIn(folder string) []string {
	var names []string
	entries, _ := os.ReadDir(folder)
	for _, entry := range entries {
		if !entry.Type().IsRegular() || !licenceFile.MatchString(entry.Name()) {
			continue
		}
		text, _ := os.ReadFile(filepath.Join(folder, entry.Name()))
		for _, match := range licensecheck.Scan(text).Match {
			if !match.IsURL && spdx.MatchString(match.ID) {
				names = append(names, match.ID)
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}
