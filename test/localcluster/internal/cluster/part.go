package cluster

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	"kube-queue.dev/kube-queue/test/localcluster/internal/process"
)

// part is a program of the cluster, ready to be started.
type part struct {
	name string
	rank rank
	spec process.Spec
	// ready is asked until it passes. Without it a part is ready when it runs.
	ready func(context.Context) error
	// grace is how long it may take to end by itself.
	grace time.Duration
}

// rank orders the stop: the highest first, so that no part loses what it
// depends on. Parts of one rank stop together.
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

// defaultGrace is enough for every part that is going to end at all.
const defaultGrace = 3 * time.Second

// setup is what the parts of one cluster are made from.
type setup struct {
	folder      Folder
	config      Config
	ports       Ports
	credentials *credentials
	api         *API
}

// newSetup makes ports and credentials for a start.
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
		for _, user := range append([]string{name}, operator.companions...) {
			groups[user] = groupMasters
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
	if err := writeFile(folder.Kubeconfig(), s.credentials.kubeconfigFor(userAdmin, s.server())); err != nil {
		return nil, fmt.Errorf("kubeconfig: %w", err)
	}
	s.api = newAPI(s.server(), s.credentials.tokens[userAdmin], s.credentials.ca)
	return s, nil
}

// server is the API server's address.
func (s *setup) server() string { return "https://" + s.ports.address(portAPIServer) }

// program is the path of a built program.
func (s *setup) program(component, name string) string {
	return filepath.Join(s.config.Built[component], name)
}

// core is a part of the control plane; its name is its program's.
func (s *setup) core(name string, rank rank, ready func(context.Context) error, args ...string) part {
	return part{
		name:  name,
		rank:  rank,
		ready: ready,
		grace: defaultGrace,
		spec: process.Spec{
			Name: name,
			Path: s.program(controlPlane, name),
			Args: args,
			Env:  s.environment(),
			Dir:  string(s.folder),
			Log:  s.folder.Log(name),
		},
	}
}

// environment is what a part gets: the little that programs need, nothing of the
// caller's. Temporary files go below the data folder and end with it.
func (s *setup) environment(extra ...string) []string {
	return append([]string{
		"PATH=/usr/local/bin:/usr/bin:/bin",
		"HOME=" + s.folder.Path("tmp"),
		"TMPDIR=" + s.folder.Path("tmp"),
		s.folder.mark(),
	}, extra...)
}
