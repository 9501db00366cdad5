package cluster

import (
	"fmt"
	"os"

	"kube-queue.dev/kube-queue/test/localcluster/internal/process"
	"kube-queue.dev/kube-queue/test/localcluster/internal/standin"
)

// ourselves is a path of this program for as long as it runs. Its file may be
// gone before that: go run removes what it has built when the command ends.
func ourselves() string { return fmt.Sprintf("/proc/%d/exe", os.Getpid()) }

// standIn is a part that plays what a stand-in is named for, as the user of that
// name.
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
