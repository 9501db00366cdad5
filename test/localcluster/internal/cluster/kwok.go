package cluster

import (
	_ "embed"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"kube-queue.dev/kube-queue/test/localcluster/internal/build"
)

const kwok = "kwok"

// stages defines the stages of nodes and pods for kwok. POD_RUN_TIME_MS is replaced by
// Config.PodRunTime.
//
//go:embed stages.yaml
var stages string

var kwokComponent = build.Component{Name: kwok, Package: "sigs.k8s.io/kwok/cmd/kwok", Binary: "kwok", LDFlags: "-s -w"}

// renderStages fills in the run time of pods that do not set their own.
func renderStages(podRunTime time.Duration) string {
	return strings.ReplaceAll(stages, "POD_RUN_TIME_MS", strconv.FormatInt(podRunTime.Milliseconds(), 10))
}

// kwok simulates the kubelets.
func (s *setup) kwok() (part, error) {
	config := s.folder.Path("kwok.yaml")
	if err := os.WriteFile(config, []byte(renderStages(s.config.PodRunTime)), 0o644); err != nil {
		return part{}, err
	}
	ready := healthy("http://" + s.ports.address(portKwok) + "/healthz")
	return s.part(kwok, rankKwok, filepath.Join(s.config.Built[kwok], "kwok"), ready, []string{
		"--kubeconfig=" + s.credentials.kubeconfig(userKwok),
		// Relative to the folder of the part, because the flag is a comma-separated list and a folder can
		// contain a comma.
		"--config=" + filepath.Base(config),
		"--server-address=" + s.ports.address(portKwok),
	}), nil
}
