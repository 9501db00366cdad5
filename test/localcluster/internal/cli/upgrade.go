package cli

import (
	"context"
	"fmt"

	"kube-queue.dev/kube-queue/test/localcluster/internal/cluster"
)

func upgradeCommand() command {
	return command{
		name:    "upgrade",
		summary: "upgrade a cluster to a newer version of Kubernetes",
		help: `
Stops the control plane and starts that of another version on the same data. The folder,
ports, certificates, kubeconfigs and routes stay valid. Operators, programs and simulated
nodes keep running and connect again.`,
		flags: (*invocation).versionFlags,
		run: func(ctx context.Context, i *invocation) error {
			folder, version, err := i.version(ctx)
			if err != nil {
				return err
			}
			return folder.Upgrade(ctx, version)
		},
	}
}

func secondStartCommand() command {
	return command{
		name:    "apiserver start",
		summary: "start a second API server",
		help: `
The second API server serves the same data as the first one, and can have another version,
as while the API servers of a cluster are upgraded one after another. The command prints
the path of a kubeconfig for it.`,
		flags: (*invocation).versionFlags,
		run: func(ctx context.Context, i *invocation) error {
			folder, version, err := i.version(ctx)
			if err != nil {
				return err
			}
			second, err := folder.StartSecond(ctx, version)
			if err != nil {
				return err
			}
			fmt.Fprintln(i.world.Out, second.Kubeconfig)
			return nil
		},
	}
}

func secondStopCommand() command {
	return command{
		name:    "apiserver stop",
		summary: "stop the second API server",
		help:    `The first API server is not affected.`,
		flags:   (*invocation).dataFlag,
		run: func(ctx context.Context, i *invocation) error {
			folder, err := i.folder()
			if err != nil {
				return err
			}
			return folder.StopSecond(ctx)
		},
	}
}

func (i *invocation) versionFlags() {
	i.dataFlag()
	i.sourceFlag()
	i.kubernetesFlag()
}

// version builds the requested version of the control plane if it is missing.
func (i *invocation) version(ctx context.Context) (cluster.Folder, cluster.Version, error) {
	version := cluster.Version{Kubernetes: i.config.Kubernetes}
	folder, err := i.folder()
	if err != nil {
		return folder, version, err
	}
	if _, err := i.validConfig(); err != nil {
		return folder, version, err
	}
	builder, err := i.builder()
	if err != nil {
		return folder, version, err
	}
	dirs, err := builder.Ensure(ctx, cluster.Config{Kubernetes: version.Kubernetes, OnlyAPI: true}.Components())
	if err != nil {
		return folder, version, err
	}
	version.Built = dirs[0]
	return folder, version, nil
}
