// Package examples embeds the manifests of this folder, so that tests apply the very files that users copy.
package examples

import "embed"

// Files are the manifests: one for each kind of job, named like the kind in --enabled-extensions,
// and quota-tree.yaml.
//
//go:embed *.yaml
var Files embed.FS

// QuotaTree is the name of the file that is no job.
const QuotaTree = "quota-tree.yaml"
