# Sourced by the scripts of this folder, with the root of the repository as the
# working directory.

# The same Go settings whatever the caller has set. VCS stamping fails in a tree
# that belongs to another user, and nothing reads the stamp.
export GOFLAGS=-buildvcs=false
export GOWORK=off

# build_tools DIR builds the pinned programs of hack/tools and our own generators.
build_tools() {
  mkdir -p "$1"
  go build -C hack/tools -o "$1/" tool
  go build -o "$1/" ./hack/treeschema ./hack/metricsdoc
}

# build_helm DIR builds helm, which takes minutes the first time: only who renders the
# chart needs it.
build_helm() {
  mkdir -p "$1"
  go build -C hack/helm -ldflags '-s -w' -o "$(realpath "$1")/" tool
}

# build_linked DIR builds the generators that link the programs, and so what the others
# generate, and the simulator.
build_linked() {
  go build -o "$1/" ./hack/kinds ./hack/settings ./hack/pluginreference ./cmd/kube-queue-simulator
}
