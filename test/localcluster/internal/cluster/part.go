package cluster

import (
	"fmt"
	"path/filepath"
	"time"

	"kube-queue.dev/kube-queue/test/localcluster/internal/kube"
	"kube-queue.dev/kube-queue/test/localcluster/internal/process"
)

// part is a program of the cluster with everything needed to start it.
type part struct {
	name string
	rank rank
	spec process.Spec
	// ready is repeated until it passes. Without it a part is ready when it runs.
	ready check
	// grace is how long it may take to terminate.
	grace time.Duration
}

// rank determines the order of a stop: the highest rank stops first, so that no part loses a dependency. Parts of the
// same rank stop together.
type rank int

const (
	rankEtcd rank = iota
	rankAPIServer
	rankControllerManager
	rankScheduler
	rankKwok
	rankOperator
	rankProgram
)

func (r rank) String() string {
	switch r {
	case rankOperator:
		return "operator"
	case rankProgram:
		return "program"
	default:
		return "core"
	}
}

// defaultGrace is long enough for every part that can terminate.
const defaultGrace = 3 * time.Second

// setup has the data to build the parts of a cluster.
type setup struct {
	folder      Folder
	config      Config
	ports       Ports
	credentials *credentials
	api         *kube.Client
}

// newSetup allocates ports and creates credentials for a start.
func newSetup(folder Folder, config Config, pick func([]string) (Ports, error)) (*setup, error) {
	names := corePorts()
	groups := map[string]string{
		userAdmin:             groupMasters,
		userControllerManager: "",
		userScheduler:         "",
		userKwok:              groupMasters,
	}
	for _, name := range config.allOperators() {
		operator := operators[name]
		groups[name] = groupMasters
		if operator.companion.name != "" {
			groups[operator.companion.name] = groupMasters
		}
		for _, port := range operator.ports {
			names = append(names, name+"-"+port)
		}
	}
	ports, err := pick(names)
	if err != nil {
		return nil, err
	}
	s := &setup{folder: folder, config: config, ports: ports}
	s.credentials, err = newCredentials(folder.Path("credentials"), groups)
	if err != nil {
		return nil, fmt.Errorf("credentials: %w", err)
	}
	if err := s.credentials.writeKubeconfigs(s.server()); err != nil {
		return nil, fmt.Errorf("kubeconfig: %w", err)
	}
	if err := s.credentials.writeKubeconfig(folder.Kubeconfig(), userAdmin, s.server()); err != nil {
		return nil, fmt.Errorf("kubeconfig: %w", err)
	}
	s.api, err = s.credentials.admin(s.server())
	return s, err
}

// ready returns what is needed to use the cluster.
func (s *setup) ready() *Ready {
	return &Ready{
		Kubeconfig: s.folder.Kubeconfig(),
		Data:       string(s.folder),
		AuditLog:   s.folder.AuditLog(),
		Kubectl:    s.config.Kubectl(),
		Kubernetes: s.config.kubernetes().minor,
		Server:     s.server(),
		Logs:       s.folder.Logs(),
	}
}

// server returns the address of the API server.
func (s *setup) server() string { return "https://" + s.ports.address(portAPIServer) }

// program returns the path of a program of the control plane.
func (c Config) program(name string) string { return filepath.Join(c.Built[controlPlane], name) }

// Kubectl returns the path of the built kubectl.
func (c Config) Kubectl() string { return c.program("kubectl") }

// part returns a part that runs the program at path.
func (s *setup) part(name string, rank rank, path string, ready check, args []string, env ...string) part {
	return part{
		name:  name,
		rank:  rank,
		ready: ready,
		grace: defaultGrace,
		spec: process.Spec{
			Name: name,
			Path: path,
			Args: args,
			Env:  s.environment(env...),
			Dir:  string(s.folder),
			Log:  s.folder.Log(name),
		},
	}
}

// core returns a part of the control plane. Its name is that of its program.
func (s *setup) core(name string, rank rank, ready check, args []string, env ...string) part {
	return s.part(name, rank, s.config.program(name), ready, args, env...)
}

// environment returns the environment of a part, without the caller's environment. Temporary files are in the data
// folder.
func (s *setup) environment(extra ...string) []string {
	return append([]string{
		"PATH=/usr/local/bin:/usr/bin:/bin",
		// All parts share a few cores. By default garbage collection would take a quarter of their processor
		// time.
		"GOGC=400",
		"HOME=" + s.folder.Path("tmp"),
		"TMPDIR=" + s.folder.Path("tmp"),
		s.folder.mark(),
	}, extra...)
}
