#!/usr/bin/env bash
# Writes deploy/: what the chart renders with hack/deploy-values.yaml, one file for each
# template and one for each policy that policies/hold.yaml and policies/fence.yaml render,
# for those who apply manifests with kubectl. deploy/webhook/ has the policies, roles and programs
# for Kubernetes 1.30 to 1.35, where a webhook holds the jobs. The folders pods/ in both have the policies and roles that differ if
# plain pods are queued too.
#
# The chart is the one source: change it, and not deploy/. make verify compares both.
#
# It works on the tree that it is in, so hack/verify.sh can run it in a copy.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source hack/env.sh

# HELM is a helm that is built already; verify.sh sets it.
helm=${HELM:-}
if [[ -z ${helm} ]]; then
  build_helm bin/tools
  helm=bin/tools/helm
fi

scratch=$(mktemp -d)
trap 'rm -rf "${scratch}"' EXIT
# render FOLDER ARGS... renders the chart into a folder.
render() {
  local folder=$1
  shift
  "${helm}" template kube-queue charts/kube-queue --namespace kube-queue --values hack/deploy-values.yaml --no-hooks \
    --output-dir "${scratch}/output" "$@" >"${scratch}/log" || {
    cat "${scratch}/log"
    exit 1
  }
  mv "${scratch}/output/kube-queue/templates" "${folder}"
  rm -r "${scratch}/output"
  for template in hold fence; do
    if [[ -e ${folder}/policies/${template}.yaml ]]; then
      split "${folder}" "${template}"
    fi
  done
}

# split FOLDER TEMPLATE writes each policy of a template into its own file. They are distinguished by
# their names: kube-queue-hold-job.
split() {
  local rendered=$1 template=$2
  awk -v folder="${rendered}/policies" '
    function flush() {
      if (file != "") printf "%s", document >>file
      document = file = ""
    }
    /^---$/ { flush() }
    { document = document $0 "\n" }
    file == "" && /^  name: kube-queue-/ { file = folder "/" substr($2, length("kube-queue-") + 1) ".yaml" }
    END { flush() }
  ' "${rendered}/policies/${template}.yaml"
  rm "${rendered}/policies/${template}.yaml"
}

# render_both FOLDER ARGS... renders the chart without and with plain pods.
render_both() {
  local folder=$1
  shift
  render "${folder}" "$@"
  render "${scratch}/pods" "$@" --set 'enabledExtensions={tfjob,pytorchjob,pod}'
  mkdir "${folder}/pods"
  (cd "${scratch}/pods" && find policies rbac -type f) | while IFS= read -r file; do
    if ! cmp -s "${scratch}/pods/${file}" "${folder}/${file}"; then
      install -D -m 644 "${scratch}/pods/${file}" "${folder}/pods/${file}"
    fi
  done
  rm -r "${scratch}/pods"
}

render_both "${scratch}/deploy" --kube-version 1.36.0
render_both "${scratch}/webhook" --kube-version 1.30.0 --set holdPolicies.by=webhook
# These are the same.
rm -r "${scratch}/webhook/crds" "${scratch}/webhook/namespace.yaml"
mv "${scratch}/webhook" "${scratch}/deploy/webhook"
rm -rf deploy
cp -r "${scratch}/deploy" deploy
# helm reports each document where it comes from, and leaves a line free after it:
# once for a file is enough.
find deploy -name '*.yaml' -print0 | while IFS= read -r -d '' file; do
  {
    printf '# Rendered from charts/%s by make generate.\n\n' "$(sed -n 's/^# Source: //p' "${file}" | head -n 1)"
    sed -e '1{/^---$/d}' -e '/^# Source: /d' "${file}" | sed -e '/./,$!d' | sed -e '$!N; s/^\n---$/---/; P; D' | sed -e '${/^$/d}'
  } >"${scratch}/file"
  cat "${scratch}/file" >"${file}"
done
