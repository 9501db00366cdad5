// Package chart tests the chart charts/kube-queue by rendering it with helm. It compares the
// manifests with golden files, decodes them strictly like the API server, and checks that they
// agree with the programs and the documentation.
//
// After a change of the chart, go test ./test/chart -update writes the golden files and the table
// of values in the chart's README.md. Review the difference.
package chart
