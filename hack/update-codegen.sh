#!/usr/bin/env bash
# Writes everything in this repository that a program writes: deep copies,
# clients, listers, informers, CRDs and the table of metrics. Run it after a change to
# apis/ or to pkg/metrics/definitions.go.
#
# It works on the tree that it stands in, so hack/verify.sh can run it in a copy.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source hack/env.sh

module=$(go list -m)
apis=("${module}/apis/scheduling/v1alpha1" "${module}/apis/quota/v1beta1")
generated=pkg/generated

# TOOLS is a folder where they are built already; verify.sh sets it.
tools=${TOOLS:-}
if [[ -z ${tools} ]]; then
  tools=$PWD/bin/tools
  build_tools "${tools}"
fi

echo "deep copies"
find apis -name 'zz_generated.*' -delete
"${tools}/deepcopy-gen" --output-file zz_generated.deepcopy.go "${apis[@]}"

echo "clients, listers, informers"
rm -rf "${generated}"
inputs=()
for api in "${apis[@]}"; do
  inputs+=(--input "${api}")
done
# No fake clientset: the tests talk to a real API server.
"${tools}/client-gen" --clientset-name versioned --fake-clientset=false \
  --input-base "" "${inputs[@]}" \
  --output-dir "${generated}/clientset" --output-pkg "${module}/${generated}/clientset"
"${tools}/lister-gen" \
  --output-dir "${generated}/listers" --output-pkg "${module}/${generated}/listers" "${apis[@]}"
"${tools}/informer-gen" \
  --versioned-clientset-package "${module}/${generated}/clientset/versioned" \
  --listers-package "${module}/${generated}/listers" \
  --output-dir "${generated}/informers" --output-pkg "${module}/${generated}/informers" "${apis[@]}"

echo "CRDs"
rm -rf deploy/crds
"${tools}/controller-gen" crd paths=./apis/... output:crd:dir=deploy/crds
# A CRD schema cannot refer to itself, so the levels of the tree are written out.
"${tools}/treeschema" deploy/crds/scheduling.sigs.k8s.io_elasticquotatrees.yaml

echo "the table of metrics"
"${tools}/metricsdoc" docs/metrics.md
