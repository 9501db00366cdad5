// Package extensions contains the adapters of the kinds of jobs, one package for each, and embeds
// their test data for tests of other packages.
package extensions

import "embed"

// TestData has the folders testdata of the adapters, such as job/testdata. The package comment of
// framework/adaptertest describes the format.
//
//go:embed */testdata
var TestData embed.FS
