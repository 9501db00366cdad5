#!/usr/bin/env bash
# Checks what a reviewer should not have to: formatting, vet, staticcheck, tidy
# modules, and that everything generated is what the generators write now.
# Changes nothing in the tree (programs are built into bin/, which git ignores),
# runs every check and then fails if one did, saying how to fix it.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source hack/env.sh

# check TITLE REMEDY COMMAND... runs one check, and prints at its end what it says if it fails.
check() {
  local title=$1 remedy=$2 log started=${SECONDS}
  shift 2
  log=$(mktemp -p "${scratch}")
  if "$@" >"${log}" 2>&1; then
    echo "verify: ${title}: ok ($((SECONDS - started)) s)"
  else
    printf 'verify: %s:\n%s\n' "${title}" "$(cat "${log}")"
    echo "  ${title}: ${remedy}" >>"${failed}"
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
other='^hack/tools$|^hack/helm$|^test/localcluster/components/'
own_modules() {
  all_modules | grep -vE "${other}"
}
other_modules() {
  all_modules | grep -E "${other}"
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
  local versions=(./test/e2e/install ./test/integration/admission ./test/localcluster/cmd/localcluster)
  go vet -tags versions "${versions[@]}" && "${tools}/staticcheck" -tags versions "${versions[@]}" &&
  go vet -tags native ./test/e2e/gangs && "${tools}/staticcheck" -tags native ./test/e2e/gangs
}

# check_code compiles. These checks wait for each other, so that nothing is compiled twice.
check_code() {
  check "go vet" "fix what it says" in_modules own_modules go vet ./...
  check "staticcheck" "fix what it says" in_modules own_modules "${tools}/staticcheck" ./...
  check "go vet and staticcheck of tests on other versions of Kubernetes" "fix what they say" lint_tagged
}

# check_files keeps one core busy at most.
check_files() {
  check "gofmt" "run gofmt -w on these files" gofmt_clean
  check "workflows" "fix what it says" "${tools}/actionlint" -shellcheck= -pyflakes=
  check "generated code, CRDs, deploy and pages" "run make generate" generated_fresh
  check "go mod tidy" "run go mod tidy in these modules" in_modules own_modules go mod tidy -diff
  if [[ -z ${SHORT:-} ]]; then # -mod=readonly reports what these lack
    check "go mod tidy of the tools and of the components of the local cluster" "run go mod tidy in these modules" in_modules other_modules go mod tidy -diff
    check "go mod tidy of other versions of Kubernetes" "run go mod tidy -modfile=FILE for these files" versions_tidy
  fi
}

scratch=$(mktemp -d)
trap 'rm -rf "${scratch}"' EXIT
failed=${scratch}/failed
tools=$PWD/bin/tools
echo "verify: building the tools"
build_tools "${tools}"
build_helm "${tools}"
build_linked "${tools}"

# Ctrl-C does not reach what runs in the background.
trap 'kill 0' INT
echo "verify: checking, two checks at a time"
check_code &
code=$! # a process substitution would change it
check_files
wait "${code}"

if [[ -e ${failed} ]]; then
  echo "verify: failed:"
  cat "${failed}"
  exit 1
fi
echo "verify: everything is in order"
