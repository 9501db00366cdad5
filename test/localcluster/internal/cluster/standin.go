package cluster

import (
	"fmt"
	"os"

	"kube-queue.dev/kube-queue/test/localcluster/internal/process"
	"kube-queue.dev/kube-queue/test/localcluster/internal/standin"
)

// ourselves returns a path of this program that is valid while it runs. The file itself may be
// deleted before: go run removes the executable when the command ends.
func ourselves() string { return fmt.Sprintf("/proc/%d/exe", os.Getpid()) }

// standIn returns a part that runs a stand-in as the user with its name.
func (s *setup) standIn(name string) part {
	return part{
		name:  name,
		rank:  rankOperator,
		grace: defaultGrace,
		spec: process.Spec{
			Name: name,
			Path: ourselves(),
			Arg0: "localcluster",
			Args: []string{standin.Command, name},
			Env:  s.environment("KUBECONFIG=" + s.credentials.kubeconfig(name)),
			Dir:  string(s.folder),
			Log:  s.folder.Log(name),
		},
	}
}
