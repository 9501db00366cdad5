#!/usr/bin/env bash
# Checks what a reviewer should not have to: formatting, vet, staticcheck, tidy
# modules, the vocabulary, and that everything generated is what the generators write now.
# Changes nothing in the tree (programs are built into bin/, which git ignores),
# runs every check and then fails if one did, saying how to fix it.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source hack/env.sh

failed=()
# check TITLE REMEDY COMMAND... runs one check.
check() {
  local title=$1 remedy=$2 started=${SECONDS}
  shift 2
  echo "verify: ${title}"
  if "$@"; then
    echo "verify: ${title}: ok ($((SECONDS - started)) s)"
  else
    failed+=("${title}: ${remedy}")
  fi
}

# The files of this tree: what git knows or would add, and what is there of it.
files() {
  git ls-files -z --cached --others --exclude-standard -- "$@" |
    while IFS= read -r -d '' file; do
      if [[ -e ${file} ]]; then printf '%s\0' "${file}"; fi
    done
}

# The folders of all modules, and of those with code of our own worth checking:
# the components of the local cluster and the tools only name what to build.
all_modules() {
  files 'go.mod' '**/go.mod' | xargs -0 -n1 dirname
}
own_modules() {
  all_modules | grep -v -e '^hack/tools$' -e '^hack/helm$' -e '^test/localcluster/components/'
}

# The modules of other versions of Kubernetes are in the folder of the default one.
versions_tidy() {
  local ok=0
  while IFS= read -r -d '' file; do
    (cd "$(dirname "${file}")" && go mod tidy -diff -modfile="$(basename "${file}")") || {
      echo "in ${file}"
      ok=1
    }
  done < <(files 'test/localcluster/components/*/kubernetes-*.mod')
  return "${ok}"
}

gofmt_clean() {
  local out
  out=$(files '*.go' | xargs -0 "$(go env GOROOT)/bin/gofmt" -l)
  if [[ -n ${out} ]]; then
    echo "${out}"
    return 1
  fi
}

in_modules() {
  local modules=$1 ok=0
  shift
  for module in $("${modules}"); do
    (cd "${module}" && "$@") || {
      echo "in module ${module}"
      ok=1
    }
  done
  return "${ok}"
}

# generated_fresh also fails if hack/messages cannot list a message that reaches users.
generated_fresh() {
  local copy=${scratch}/tree log=${scratch}/log ok=0
  mkdir "${copy}"
  files | xargs -0 cp --parents -t "${copy}"
  TOOLS=${tools} HELM=${tools}/helm "${copy}/hack/update-codegen.sh" >"${log}" 2>&1 || {
    cat "${log}"
    ok=1
  }
  for path in apis pkg/generated charts/kube-queue hack/deploy-values.yaml deploy docs examples README.md; do
    git --no-pager diff --no-index --exit-code "${path}" "${copy}/${path}" || ok=1
  done
  return "${ok}"
}

# lint_tagged checks the files with build tags, which the other checks leave out.
lint_tagged() {
  go vet -tags versions ./test/e2e/install ./test/integration/admission && "${tools}/staticcheck" -tags versions ./test/e2e/install ./test/integration/admission &&
  go vet -tags native ./test/e2e/gangs && "${tools}/staticcheck" -tags native ./test/e2e/gangs &&
    (cd test/localcluster && go vet -tags versions ./cmd/localcluster && "${tools}/staticcheck" -tags versions ./cmd/localcluster)
}

scratch=$(mktemp -d)
trap 'rm -rf "${scratch}"' EXIT
tools=$PWD/bin/tools
echo "verify: building the tools"
build_tools "${tools}"
build_helm "${tools}"
build_linked "${tools}"

check "gofmt" "run gofmt -w on these files" gofmt_clean
check "vocabulary" "use the words of docs/reference/glossary.md" go run ./hack/vocabulary .
check "workflows" "fix what it says" "${tools}/actionlint" -shellcheck= -pyflakes=
check "generated code, CRDs, deploy and pages" "run make generate" generated_fresh
check "go mod tidy" "run go mod tidy in these modules" in_modules all_modules go mod tidy -diff
check "go mod tidy of other versions of Kubernetes" "run go mod tidy -modfile=FILE for these files" versions_tidy
check "go vet" "fix what it says" in_modules own_modules go vet ./...
check "staticcheck" "fix what it says" in_modules own_modules "${tools}/staticcheck" ./...
check "go vet and staticcheck of tests on other versions of Kubernetes" "fix what they say" lint_tagged

if ((${#failed[@]})); then
  echo "verify: failed:"
  printf '  %s\n' "${failed[@]}"
  exit 1
fi
echo "verify: everything is in order"
