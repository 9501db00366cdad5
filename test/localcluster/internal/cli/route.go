package cli

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"kube-queue.dev/kube-queue/test/localcluster/internal/cluster"
)

func routeCommand() command {
	return command{
		name:    "route",
		args:    "[NAMESPACE/SERVICE:PORT=ADDRESS[,ADDRESS...]]...",
		summary: "route a Service to programs on this machine",
		help: `
The API server connects to a Service at the addresses of its route: to each in turn that
accepts the connection. PORT is the number of the Service's port, ADDRESS is HOST:PORT.
Without addresses the route is removed. A Service without a route leads to its ready
endpoints. Without arguments the command prints the routes.`,
		flags: (*invocation).dataFlag,
		run: func(ctx context.Context, i *invocation) error {
			routes := cluster.Routes{}
			for _, text := range i.positional {
				if err := routes.ParseRoute(text); err != nil {
					return usagef("route: %v", err)
				}
			}
			folder, err := i.folder()
			if err != nil {
				return err
			}
			if len(routes) > 0 {
				return folder.Route(ctx, routes)
			}
			routes, err = folder.Routes(ctx)
			for _, port := range slices.Sorted(maps.Keys(routes)) {
				fmt.Fprintf(i.world.Out, "%s=%s\n", port, strings.Join(routes[port], ","))
			}
			return err
		},
	}
}
