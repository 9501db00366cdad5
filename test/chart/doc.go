// Package chart tests the chart charts/kube-queue by rendering it with helm: what is
// in the manifests is compared with golden files, read strictly as the API server would
// read it, and held to what the programs and the documents say.
//
// After a change of the chart, go test ./test/chart -update writes the golden files and
// the table of values in the chart's README.md; look at their difference.
package chart
