package command

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/client-go/rest"

	"kube-queue.dev/kube-queue/pkg/plugin/access"
)

type cluster struct {
	*shell
	*access.Cluster
}

// defaultServer is the server of a kubeconfig without a cluster.
const defaultServer = "localhost:8080"

var errNoCluster = errors.New("no cluster is selected: the kubeconfig has no current context; see kubectl config get-contexts")

// connect returns clients with the caller's kubeconfig and flags. It makes no request.
func (s *shell) connect() (*cluster, error) {
	if err := s.checkContext(); err != nil {
		return nil, err
	}
	config, err := s.flags.ToRESTConfig()
	if err != nil {
		return nil, err
	}
	if strings.HasSuffix(config.Host, defaultServer) && (s.flags.APIServer == nil || *s.flags.APIServer == "") {
		if raw, err := s.flags.ToRawKubeConfigLoader().RawConfig(); err != nil || len(raw.Clusters) == 0 {
			return nil, errNoCluster
		}
	}
	config = rest.CopyConfig(config)
	config.UserAgent = "kubectl-kube_queue/" + programVersion()
	config.WarningHandler = rest.NewWarningWriter(s.Streams.ErrOut, rest.WarningWriterOptions{Deduplicate: true})
	at, err := access.New(config)
	if err != nil {
		return nil, err
	}
	at.QueueNamespace, at.Out, at.ErrOut, at.Now = s.queueNamespace, s.Streams.Out, s.Streams.ErrOut, s.Now
	at.Namespace, _, err = s.flags.ToRawKubeConfigLoader().Namespace()
	return &cluster{s, at}, err
}

// checkContext returns an error if the kubeconfig does not have the context that the caller named.
func (s *shell) checkContext() error {
	if s.flags.Context == nil || *s.flags.Context == "" {
		return nil
	}
	raw, err := s.flags.ToRawKubeConfigLoader().RawConfig()
	if err != nil {
		return err
	}
	if _, known := raw.Contexts[*s.flags.Context]; !known {
		return fmt.Errorf("the kubeconfig has no context %q%s", *s.flags.Context, access.DidYouMean(*s.flags.Context, slices.Sorted(maps.Keys(raw.Contexts))))
	}
	return nil
}
