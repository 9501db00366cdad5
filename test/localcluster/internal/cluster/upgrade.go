package cluster

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"
)

// Version is a built version of the control plane.
type Version struct {
	// Kubernetes is one of KubernetesVersions.
	Kubernetes string `json:"kubernetes"`
	// Built is the folder of the built component.
	Built string `json:"built"`
}

// secondServer is a second API server of a cluster, on the same data as the first.
const secondServer = "kube-apiserver-2"

// upgrade replaces the control plane with a newer version. Everything else stays: etcd's data, ports, certificates,
// kubeconfigs, routes, and the simulated nodes, operators and programs, which reconnect. If it fails, the cluster
// stops.
func (s *Supervisor) upgrade(to Version) error {
	s.changing.Lock()
	defer s.changing.Unlock()
	s.mu.Lock()
	from, phase := s.config.kubernetes().minor, s.phase
	known := KubernetesVersions()
	var err error
	switch {
	case phase != PhaseReady:
		err = fmt.Errorf("upgrade: the cluster is %s", phase)
	case slices.Index(known, to.Kubernetes) <= slices.Index(known, from):
		err = fmt.Errorf("upgrade: the cluster has Kubernetes %s, and %s is not newer", from, to.Kubernetes)
	default:
		s.phase = PhaseUpgrading
	}
	s.mu.Unlock()
	if err != nil {
		return err
	}
	s.save()
	if err := s.replaceControlPlane(to); err != nil {
		err = fmt.Errorf("upgrade from Kubernetes %s to %s: %w", from, to.Kubernetes, err)
		s.stop(err)
		return err
	}
	return nil
}

// replaceControlPlane stops the control plane and starts another version.
func (s *Supervisor) replaceControlPlane(to Version) error {
	ctx, cancel := readyWithin(context.Background(), startDeadline)
	defer cancel()
	began := time.Now()
	next := s.setup.withVersion(to)
	for _, name := range []string{"kube-scheduler", "kube-controller-manager", "kube-apiserver", "etcd"} {
		if running := s.partNamed(name); running != nil {
			s.stopPart(running)
		}
	}
	apiServer, err := next.apiServer()
	if err != nil {
		return err
	}
	parts := []part{next.etcd(), apiServer}
	if !next.config.OnlyAPI {
		parts = append(parts, next.controllerManager(), next.scheduler())
	}
	for _, part := range parts {
		if err := s.restart(ctx, part); err != nil {
			return err
		}
	}
	if err := s.folder.saveConfig(next.config); err != nil {
		return err
	}
	s.mu.Lock()
	s.config, s.setup, s.ready = next.config, next, next.ready()
	s.mu.Unlock()
	if err := s.becomeReady(); err != nil {
		return err
	}
	s.say("upgraded to Kubernetes %s in %v", to.Kubernetes, since(began))
	return nil
}

// restart starts a part with its previous port. A client that tries to connect can occupy the port for a moment, so
// restart retries a lost port.
func (s *Supervisor) restart(ctx context.Context, p part) error {
	for attempt := 1; ; attempt++ {
		current, abort := context.WithCancelCause(ctx)
		s.mu.Lock()
		s.abort = abort
		s.mu.Unlock()
		err := s.run(current, p)
		abort(nil)
		if part, lost := lostPort(err); !lost || part != p.name || attempt == startAttempts {
			return err
		}
		s.say("%s lost its port to another program: trying again", p.name)
	}
}

// withVersion returns the setup of a cluster with another version.
func (s *setup) withVersion(to Version) *setup {
	next := *s
	next.config.Kubernetes = to.Kubernetes
	next.config.Built = maps.Clone(s.config.Built)
	next.config.Built[controlPlane] = to.Built
	return &next
}

// startSecond starts a second API server, possibly of another version, and returns the path of the administrator's
// kubeconfig for it.
func (s *Supervisor) startSecond(version Version) (kubeconfig string, err error) {
	s.changing.Lock()
	defer s.changing.Unlock()
	setup, phase := s.current()
	if phase != PhaseReady {
		return "", fmt.Errorf("start %s: the cluster is %s", secondServer, phase)
	}
	ports, err := s.pickPorts([]string{portAPIServer})
	if err != nil {
		return "", err
	}
	second := setup.withVersion(version)
	second.ports = maps.Clone(setup.ports)
	second.ports[portAPIServer] = ports[portAPIServer]
	if second.api, err = setup.credentials.admin(second.server()); err != nil {
		return "", err
	}
	part, err := second.apiServer()
	if err != nil {
		return "", err
	}
	part.name, part.spec.Name, part.spec.Log = secondServer, secondServer, s.folder.Log(secondServer)
	kubeconfig = s.folder.Path(kubeconfigFile + "-2")
	if err := setup.credentials.writeKubeconfig(kubeconfig, userAdmin, second.server()); err != nil {
		return "", fmt.Errorf("kubeconfig: %w", err)
	}
	ctx, cancel := readyWithin(context.Background(), startDeadline)
	defer cancel()
	return kubeconfig, s.run(ctx, part)
}

// stopSecond stops the second API server.
func (s *Supervisor) stopSecond() error {
	s.changing.Lock()
	defer s.changing.Unlock()
	running := s.partNamed(secondServer)
	if running == nil {
		return errors.New("the cluster has no second API server")
	}
	s.stopPart(running)
	s.save()
	return nil
}
