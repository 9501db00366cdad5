#!/usr/bin/env bash
# Writes everything in this repository that a program writes: deep copies,
# clients, listers, informers, CRDs, what the chart and docs/ say of the kinds of job,
# deploy/, and what docs/ says of settings and metrics. Run it after a change to apis/, to the
# chart, to extensions/registry and what a kind says of itself, to a program's options or to
# pkg/metrics/definitions.go.
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
# The kinds, which have a generator of their own, are part of what it is built of.
rm -rf "${generated}"/{clientset,listers,informers}
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
crds=charts/kube-queue/files/crds
rm -rf "${crds}"
"${tools}/controller-gen" crd paths=./apis/... output:crd:dir="${crds}"
# A CRD schema cannot refer to itself, so the levels of the tree are written out.
"${tools}/treeschema" "${crds}/scheduling.sigs.k8s.io_elasticquotatrees.yaml"

if [[ -z ${TOOLS:-} ]]; then build_linked "${tools}"; fi

echo "kinds"
"${tools}/kinds" .

echo "deploy"
hack/render-deploy.sh

echo "settings"
# What is left of a program that is gone, no program would remove.
rm -rf docs/reference/config
"${tools}/settings" docs/reference

echo "metrics"
"${tools}/metricsdoc" docs/reference/metrics.md
