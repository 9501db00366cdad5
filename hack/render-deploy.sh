#!/usr/bin/env bash
# Writes deploy/: what the chart renders with hack/deploy-values.yaml, one file for each
# template and one for each policy that policies/hold.yaml and policies/fence.yaml render,
# for those who apply manifests with kubectl.
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
"${helm}" template kube-queue charts/kube-queue --namespace kube-queue --kube-version 1.36.0 \
  --values hack/deploy-values.yaml --output-dir "${scratch}" >"${scratch}/log" || {
  cat "${scratch}/log"
  exit 1
}

rendered=${scratch}/kube-queue/templates
# The policies of one template are distinguished by their names: kube-queue-hold-job.
for template in hold fence; do
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
done

rm -rf deploy
cp -r "${rendered}" deploy
# helm reports each document where it comes from, and leaves a line free after it:
# once for a file is enough.
find deploy -name '*.yaml' -print0 | while IFS= read -r -d '' file; do
  {
    printf '# Rendered from charts/%s by make generate.\n\n' "$(sed -n 's/^# Source: //p' "${file}" | head -n 1)"
    sed -e '1{/^---$/d}' -e '/^# Source: /d' "${file}" | sed -e '/./,$!d' | sed -e '$!N; s/^\n---$/---/; P; D' | sed -e '${/^$/d}'
  } >"${scratch}/file"
  cat "${scratch}/file" >"${file}"
done
