#!/usr/bin/env bash
# Writes everything in this repository that a program generates: deep copies,
# CRDs, the API reference, the tables of job kinds in the chart and in
# docs/, deploy/, the references of settings and metrics, and plots. Run it after a
# change to apis/, to the chart, to extensions/registry or an adapter's description of its kind,
# to a program's options, to pkg/metrics/definitions.go, or to the simulator.
#
# It works on the tree that contains it, so that hack/verify.sh can run it in a copy.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source hack/env.sh

module=$(go list -m)
apis=("${module}/apis/scheduling/v1alpha1" "${module}/apis/quota/v1beta1" "${module}/apis/visibility/v1alpha1")

# TOOLS is a folder that already contains the generators; verify.sh sets it.
tools=${TOOLS:-}
if [[ -z ${tools} ]]; then
  tools=$PWD/bin/tools
  build_tools "${tools}"
fi

echo "deep copies"
find apis -name 'zz_generated.*' -delete
"${tools}/deepcopy-gen" --output-file zz_generated.deepcopy.go "${apis[@]}"

echo "CRDs"
crds=charts/kube-queue/files/crds
rm -rf "${crds}"
"${tools}/controller-gen" crd paths=./apis/... output:crd:dir="${crds}"
# A CRD schema cannot refer to itself, so the levels of the tree are written out.
"${tools}/treeschema" "${crds}/scheduling.sigs.k8s.io_elasticquotatrees.yaml"

echo "API reference"
"${tools}/crd-ref-docs" --log-level=ERROR --renderer=markdown --source-path=apis \
  --config=hack/apireference/config.yaml --templates-dir=hack/apireference/templates \
  --output-path=docs/reference/api.md

if [[ -z ${TOOLS:-} ]]; then build_linked "${tools}"; fi

echo "kinds"
"${tools}/kinds" .

echo "deploy"
hack/render-deploy.sh

echo "settings"
# Removes the files of programs that no longer exist.
rm -rf docs/reference/config
"${tools}/settings" docs/reference

echo "metrics"
"${tools}/metricsdoc" docs/reference/metrics.md

echo "kubectl plugin"
"${tools}/pluginreference" docs/reference/kubectl-kube-queue.md

echo "plot"
# docs/tasks/try-a-quota-tree.md has the same commands.
scratch=$(mktemp -d)
trap 'rm -rf "${scratch}"' EXIT
simulate() {
  (cd "${scratch}" && "${tools}/kube-queue-simulator" --trace "${OLDPWD}/test/traces/sample.csv" "$@")
}
simulate --capacity nvidia.com/gpu=80 --print-tree >"${scratch}/tree.yaml"
simulate --tree tree.yaml --policy RoundRobin,Block --reclaim=false --pause-borrowing=false \
  --plot "${PWD}/docs/tasks/simulator.svg" >/dev/null
